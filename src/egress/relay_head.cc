// SPDX-License-Identifier: Apache-2.0
#include "egress/relay_head.h"

#include <algorithm>

#include "http/forward.h"

namespace gb::egress {
namespace {

using http::iequals;

bool starts_with_word(std::string_view text, std::string_view word) {
    return text.size() >= word.size() && iequals(text.substr(0, word.size()), word);
}

std::string_view without_port(std::string_view authority, std::string_view port) {
    if (authority.ends_with(port)) authority.remove_suffix(port.size());
    return authority;
}

// The target for the upstream. What a path means is the server's business: not a byte of it is changed.
Result<std::string> origin_form(std::string_view target, std::string_view method, std::string_view host,
                                bool tls) {
    if (target.starts_with('/')) return std::string(target);
    if (target == "*" && method == "OPTIONS") return std::string(target);
    const std::string_view scheme = tls ? "https://" : "http://";
    if (!starts_with_word(target, scheme))
        return fail(ErrorCode::invalid_argument, "malformed request target");
    target.remove_prefix(scheme.size());
    const std::size_t end = std::min(target.find_first_of("/?#"), target.size());
    const std::string_view authority = target.substr(0, end), port = tls ? ":443" : ":80";
    if (!iequals(without_port(authority, port), without_port(host, port)))
        return fail(ErrorCode::invalid_argument, "the request target names another host than Host");
    const std::string_view path = target.substr(end);
    if (path.starts_with('#')) return fail(ErrorCode::invalid_argument, "malformed request target");
    return path.starts_with('/') ? std::string(path) : "/" + std::string(path);
}

void strip(http::Headers& headers, bool keep_upgrade) {
    http::strip_hop_by_hop(headers, keep_upgrade);
    headers.remove("Content-Length");
    headers.remove("HTTP2-Settings");
    std::vector<std::string> of_proxies;  // what a guest has for a proxy is not for a server
    for (const auto& [name, value] : headers.items())
        if (starts_with_word(name, "Proxy-")) of_proxies.push_back(name);
    for (const std::string& name : of_proxies) headers.remove(name);
}

}  // namespace

Result<RelayRequest> read_request(const http::RequestHead& head, bool tls, int version) {
    if (head.method == "CONNECT")
        return fail(ErrorCode::permission_denied,
                    "connect: no tunnels are made here, connect to the host itself");
    const auto hosts = std::ranges::count_if(head.headers.items(),
                                             [](const auto& item) { return iequals(item.first, "Host"); });
    RelayRequest out{.host = std::string(head.headers.get("Host")), .head = head};
    if (hosts != 1 || out.host.empty())
        return fail(ErrorCode::permission_denied, "no-name: a request needs one Host header with a name");
    GB_TRY_ASSIGN(out.head.target, origin_form(head.target, head.method, out.host, tls));
    out.length = http::body_length(head.headers);
    // Every other protocol is not asked for: the server goes on with HTTP/1.1.
    out.websocket = version >= 11 && head.method == "GET" && out.length == 0U &&
                    http::wants_upgrade(head.headers) && iequals(head.headers.get("Upgrade"), "websocket");
    strip(out.head.headers, out.websocket);
    out.repeatable = out.length == 0U && !out.websocket &&
                     (head.method == "GET" || head.method == "HEAD" || head.method == "OPTIONS");
    out.traced = iequals(head.method, "TRACE") || iequals(head.method, "TRACK");
    return out;
}

RelayAnswer read_answer(http::ResponseHead head) {
    RelayAnswer out{.head = std::move(head)};
    if (out.head.headers.has("Content-Length")) out.length = http::body_length(out.head.headers);
    http::strip_hop_by_hop(out.head.headers, false);
    out.head.headers.remove("Content-Length");
    return out;
}

Result<http::ResponseHead> read_websocket_answer(http::ResponseHead head) {
    if (!http::wants_upgrade(head.headers) || !iequals(head.headers.get("Upgrade"), "websocket"))
        return fail(ErrorCode::unavailable, "the server changes to a protocol that nobody asked for");
    http::strip_hop_by_hop(head.headers, true);
    head.headers.remove("Content-Length");
    return head;
}

}  // namespace gb::egress
