// SPDX-License-Identifier: Apache-2.0
// A module for Node.js that gives OpenSSL's generator inside it fresh bytes of the operating system. Machines
// restored from one snapshot hold the same generator, which would make the same keys in each until it takes
// fresh bytes by itself, after minutes. Node.js exports OpenSSL's and its own functions; they are declared
// here because their headers are not needed for anything else (Node-API documentation; OpenSSL's RAND_add).
#include <cstddef>

#include <sys/random.h>

extern "C" {

struct napi_env__;
struct napi_value__;
struct napi_callback_info__;
using napi_env = napi_env__*;
using napi_value = napi_value__*;
using napi_callback = napi_value (*)(napi_env, napi_callback_info__*);

int napi_create_function(napi_env env, const char* name, std::size_t length, napi_callback function,
                         void* data, napi_value* result);
int napi_get_boolean(napi_env env, bool value, napi_value* result);
// Weak: another Node.js may keep its OpenSSL to itself.
[[gnu::weak]] void RAND_seed(const void* bytes, int count);
}

namespace {

// True when the generator has taken the bytes.
napi_value reseed(napi_env env, napi_callback_info__* /*info*/) {
    unsigned char bytes[64];
    const bool seeded =
        RAND_seed != nullptr && ::getrandom(bytes, sizeof bytes, 0) == static_cast<ssize_t>(sizeof bytes);
    if (seeded) RAND_seed(bytes, sizeof bytes);
    napi_value result = nullptr;
    napi_get_boolean(env, seeded, &result);
    return result;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] napi_value napi_register_module_v1(napi_env env,
                                                                             napi_value /*exports*/) {
    napi_value function = nullptr;
    constexpr char kName[] = "reseed";
    napi_create_function(env, kName, sizeof kName - 1, reseed, nullptr, &function);
    return function;
}
