// SPDX-License-Identifier: Apache-2.0
#include "ingress/route.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace gb::ingress {
namespace {

std::unexpected<Error> bad(std::string_view what) {
    return fail(ErrorCode::invalid_argument, "Unexpected error when routing request: " + std::string(what));
}

Result<std::uint16_t> parse_port(std::string_view text) {
    unsigned value = 0;
    auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || ec != std::errc() || end != text.data() + text.size() || value < 1 || value > 65535)
        return bad("invalid sandbox port");
    return static_cast<std::uint16_t>(value);
}

Result<std::string> parse_id(std::string_view text) {
    std::string_view id = text.substr(0, text.find('-'));  // older clients append "-<client id>"
    bool good = !id.empty() && id.size() <= 64 && std::ranges::all_of(id, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    });
    if (!good) return bad("invalid sandbox ID");
    return std::string(id);
}

std::string_view without_port(std::string_view host) {
    if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
    return host.substr(0, host.find(':'));
}

bool is_address(std::string_view host) {
    if (host.starts_with('[')) return true;
    return !host.empty() && std::ranges::all_of(host, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

}  // namespace

Result<std::optional<Route>> find_route(const http::RequestHead& head) {
    const std::string_view host = without_port(head.headers.get("Host"));
    const bool headers_count =
        host.empty() || is_address(host) || http::iequals(host, "localhost") || host.starts_with("sandbox.");
    const std::string* id = head.headers.find("E2b-Sandbox-Id");
    if (headers_count) {
        if (id == nullptr) return std::nullopt;
        Route route;
        GB_TRY_ASSIGN(route.sandbox_id, parse_id(*id));
        GB_TRY_ASSIGN(route.port, parse_port(head.headers.get("E2b-Sandbox-Port")));
        return route;
    }
    std::size_t dash = host.find('-');
    std::size_t dot = host.find('.');
    bool has_port = dash != std::string_view::npos && dash > 0 && dot != std::string_view::npos && dash < dot &&
                    std::ranges::all_of(host.substr(0, dash), [](char c) { return c >= '0' && c <= '9'; });
    if (!has_port) return std::nullopt;
    Route route;
    GB_TRY_ASSIGN(route.port, parse_port(host.substr(0, dash)));
    GB_TRY_ASSIGN(route.sandbox_id, parse_id(host.substr(dash + 1, dot - dash - 1)));
    return route;
}

bool agent_path_is_public(std::string_view path) {
    static constexpr std::array<std::string_view, 5> kExact{"/health", "/metrics", "/envs", "/files", "/files/compose"};
    if (std::ranges::find(kExact, path) != kExact.end()) return true;
    for (std::string_view service : {"/process.Process/", "/filesystem.Filesystem/"})
        if (path.starts_with(service) && path.find('/', service.size()) == std::string_view::npos) return true;
    return false;
}

}  // namespace gb::ingress
