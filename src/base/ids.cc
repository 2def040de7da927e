// SPDX-License-Identifier: Apache-2.0
#include "base/ids.h"

#include <cerrno>
#include <cstdlib>

#include <sys/random.h>

namespace gb {

std::string random_bytes(std::size_t count) {
    std::string out(count, '\0');
    std::size_t done = 0;
    while (done < count) {
        ssize_t n = ::getrandom(out.data() + done, count - done, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) std::abort();  // no randomness means no identity: nothing sensible can follow
        done += static_cast<std::size_t>(n);
    }
    return out;
}

std::string random_id(std::size_t length) {
    static constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
    std::string out;
    out.reserve(length);
    while (out.size() < length) {
        for (char c : random_bytes(length + 8)) {
            auto byte = static_cast<unsigned char>(c);
            if (byte >= 252 || out.size() == length) continue;  // 252 = 7 * 36: keeps the letters equally likely
            out.push_back(kAlphabet[byte % 36]);
        }
    }
    return out;
}

std::string to_hex(std::string_view bytes) {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    std::string out;
    out.reserve(bytes.size() * 2);
    for (char c : bytes) {
        auto byte = static_cast<unsigned char>(c);
        out.push_back(kDigits[byte >> 4]);
        out.push_back(kDigits[byte & 15]);
    }
    return out;
}

std::string random_hex(std::size_t bytes) {
    return to_hex(random_bytes(bytes));
}

std::string random_uuid() {
    std::string b = random_bytes(16);
    b[6] = static_cast<char>((b[6] & 0x0f) | 0x40);
    b[8] = static_cast<char>((b[8] & 0x3f) | 0x80);
    std::string h = to_hex(b);
    return h.substr(0, 8) + "-" + h.substr(8, 4) + "-" + h.substr(12, 4) + "-" + h.substr(16, 4) + "-" + h.substr(20);
}

std::string sandbox_id() {
    return "i" + random_id(19);
}

std::string template_id() {
    return random_id(20);
}

}  // namespace gb
