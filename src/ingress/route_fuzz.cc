// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "ingress/route.h"

// Three header values, separated by newlines: whatever they are, a route that comes out is well formed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    gb::http::RequestHead head;
    for (const char* name : {"Host", "E2b-Sandbox-Id", "E2b-Sandbox-Port"}) {
        std::size_t end = text.find('\n');
        head.headers.add(name, std::string(text.substr(0, end)));
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
    auto route = gb::ingress::find_route(head);
    if (route && *route) {
        if ((*route)->port == 0 || (*route)->sandbox_id.empty() || (*route)->sandbox_id.size() > 64) __builtin_trap();
        for (char c : (*route)->sandbox_id)
            if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) __builtin_trap();
    }
    gb::ingress::agent_path_is_public(text);
    return 0;
}
