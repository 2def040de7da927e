// SPDX-License-Identifier: Apache-2.0
// Apart from the hashes: a MAC needs OpenSSL's EVP layer, which programs that only hash do not link.
#include <cstdlib>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/crypto.h"

namespace gb {

std::string hmac_sha256(std::string_view key, std::string_view data) {
    std::string out(32, '\0');
    unsigned length = 0;
    if (::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
               reinterpret_cast<const unsigned char*>(data.data()), data.size(),
               reinterpret_cast<unsigned char*>(out.data()), &length) == nullptr)
        std::abort();
    return out;
}

}  // namespace gb
