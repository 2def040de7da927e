// SPDX-License-Identifier: Apache-2.0
// Any bytes as a name: no crash, and what is accepted has one spelling that is accepted as itself.
#include <cstdlib>

#include "net/host_name.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace gb::net;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (auto host = parse_host(text); host && host->kind == Host::Kind::name) {
        auto again = parse_host(host->name);
        if (!again || *again != *host) std::abort();
        for (char c : host->name)
            if (c <= ' ' || c >= 0x7f || (c >= 'A' && c <= 'Z')) std::abort();
        // The same text as a header names the same host.
        auto authority = parse_authority(text);
        if (!authority || authority->host != *host || authority->port) std::abort();
        auto pattern = parse_pattern(text);
        if (!pattern || !pattern->matches(host->name)) std::abort();
    }
    (void)parse_authority(text);
    if (auto pattern = parse_pattern(text)) {
        auto again = parse_pattern(to_string(*pattern));
        if (!again || *again != *pattern) std::abort();
        if (pattern->kind == NamePattern::Kind::below && pattern->matches(pattern->name)) std::abort();
    }
    return 0;
}
