// SPDX-License-Identifier: Apache-2.0
#include "http/forward.h"

#include <array>
#include <charconv>

namespace gb::http {
namespace {

constexpr std::array<std::string_view, 8> kHopByHop{"Connection", "Keep-Alive", "Proxy-Connection",
                                                    "TE",         "Trailer",    "Transfer-Encoding",
                                                    "Upgrade",    "Expect"};

}  // namespace

bool wants_upgrade(const Headers& headers) {
    return headers.lists("Connection", "upgrade") && headers.has("Upgrade");
}

void strip_hop_by_hop(Headers& headers, bool keep_upgrade) {
    const std::string upgrade(headers.get("Upgrade"));
    std::vector<std::string> named;
    for (const auto& [name, value] : headers.items())
        if (headers.lists("Connection", name) && !iequals(name, "Host")) named.push_back(name);
    for (const std::string& name : named) headers.remove(name);
    for (std::string_view name : kHopByHop) headers.remove(name);
    if (keep_upgrade && !upgrade.empty()) {
        headers.add("Connection", "Upgrade");
        headers.add("Upgrade", upgrade);
    }
}

std::optional<std::uint64_t> body_length(const Headers& headers) {
    if (headers.lists("Transfer-Encoding", "chunked")) return std::nullopt;
    const std::string_view text = headers.get("Content-Length");
    std::uint64_t length = 0;
    std::from_chars(text.data(), text.data() + text.size(), length);
    return length;
}

}  // namespace gb::http
