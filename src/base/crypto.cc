// SPDX-License-Identifier: Apache-2.0
#define OPENSSL_SUPPRESS_DEPRECATED  // SHA256_Init and its kind
#include "base/crypto.h"

#include <array>
#include <cstdint>
#include <cstring>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "base/ids.h"

namespace gb {
namespace {

constexpr std::string_view kStandard = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrl = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// Both characters of every value of twelve bits: the output of programs goes through here, in emulated guests
// too.
using Pairs = std::array<std::array<char, 2>, 4096>;

constexpr Pairs pairs_of(std::string_view alphabet) {
    Pairs out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = {alphabet[i >> 6], alphabet[i & 63]};
    return out;
}

std::string encode(std::string_view data, const Pairs& pairs, bool pad) {
    std::string out((data.size() + 2) / 3 * 4, '=');
    char* to = out.data();
    const auto* from = reinterpret_cast<const unsigned char*>(data.data());
    std::size_t left = data.size();
    for (; left >= 3; left -= 3, from += 3, to += 4) {
        const unsigned bits = (unsigned{from[0]} << 16) | (unsigned{from[1]} << 8) | from[2];
        std::memcpy(to, pairs[bits >> 12].data(), 2);
        std::memcpy(to + 2, pairs[bits & 4095].data(), 2);
    }
    if (left > 0) {
        const unsigned bits = (unsigned{from[0]} << 16) | (left == 2 ? unsigned{from[1]} << 8 : 0);
        std::memcpy(to, pairs[bits >> 12].data(), 2);
        if (left == 2) to[2] = pairs[(bits >> 6) & 63][1];
        to += left + 1;
    }
    if (!pad) out.resize(static_cast<std::size_t>(to - out.data()));
    return out;
}

std::optional<std::string> decode(std::string_view text, std::string_view alphabet) {
    while (!text.empty() && text.back() == '=') text.remove_suffix(1);
    if (text.size() % 4 == 1) return std::nullopt;
    std::array<std::int8_t, 256> value{};
    value.fill(-1);
    for (std::size_t i = 0; i < alphabet.size(); ++i)
        value[static_cast<unsigned char>(alphabet[i])] = static_cast<std::int8_t>(i);
    std::string out;
    out.reserve(text.size() * 3 / 4);
    std::uint32_t bits = 0;
    int count = 0;
    for (char c : text) {
        int v = value[static_cast<unsigned char>(c)];
        if (v < 0) return std::nullopt;
        bits = (bits << 6) | static_cast<std::uint32_t>(v);
        count += 6;
        if (count >= 8) {
            count -= 8;
            out.push_back(static_cast<char>((bits >> count) & 0xff));
        }
    }
    if (count > 0 && (bits & ((1U << count) - 1)) != 0) return std::nullopt;  // stray bits: not canonical
    return out;
}

constexpr Pairs kStandardPairs = pairs_of(kStandard);
constexpr Pairs kUrlPairs = pairs_of(kUrl);

}  // namespace

// The plain functions, not EVP: those would bring all of OpenSSL's providers into the static programs of the
// guest.
std::string sha256(std::string_view data) {
    std::string out(32, '\0');
    SHA256_CTX context;
    ::SHA256_Init(&context);
    ::SHA256_Update(&context, data.data(), data.size());
    ::SHA256_Final(reinterpret_cast<unsigned char*>(out.data()), &context);
    return out;
}

struct Sha256::State {
    SHA256_CTX context{};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
    SHA256_Init(&state_->context);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::string_view piece) {
    SHA256_Update(&state_->context, piece.data(), piece.size());
}

std::string Sha256::finish() {
    std::string out(SHA256_DIGEST_LENGTH, '\0');
    SHA256_Final(reinterpret_cast<unsigned char*>(out.data()), &state_->context);
    SHA256_Init(&state_->context);
    return out;
}

std::string sha256_hex(std::string_view data) {
    return to_hex(sha256(data));
}

bool constant_time_equal(std::string_view a, std::string_view b) {
    return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string base64_encode(std::string_view data) {
    return encode(data, kStandardPairs, true);
}

std::string base64url_encode(std::string_view data) {
    return encode(data, kUrlPairs, false);
}

std::optional<std::string> base64_decode(std::string_view text) {
    return decode(text, kStandard);
}

std::optional<std::string> base64url_decode(std::string_view text) {
    return decode(text, kUrl);
}

}  // namespace gb
