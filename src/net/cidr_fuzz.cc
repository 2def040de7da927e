// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "net/policy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    if (auto parsed = gb::net::parse_cidr(text)) {
        if (const auto* cidr = std::get_if<gb::net::Cidr>(&*parsed)) {
            // What was understood, written down, must be understood as the same.
            auto again = gb::net::parse_cidr(gb::net::to_string(*cidr));
            if (!again || std::get<gb::net::Cidr>(*again) != *cidr) std::abort();
            const gb::net::Cidr twice[] = {*cidr, *cidr};
            if (gb::net::merge(twice).size() != 1) std::abort();
        }
    }
    // Whatever a client writes, it opens nothing that is closed.
    auto policy = gb::net::parse_policy({.allow_out = {std::string(text)}, .deny_out = {"0.0.0.0/0"}});
    if (policy && gb::net::judge(*policy, {}, {0xA9FEA9FE}).verdict == gb::net::Verdict::allow) std::abort();
    return 0;
}
