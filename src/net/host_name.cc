// SPDX-License-Identifier: Apache-2.0
#include "net/host_name.h"

#include <algorithm>
#include <charconv>

#include <arpa/inet.h>

namespace gb::net {
namespace {

constexpr std::size_t kLongestName = 253;
constexpr std::size_t kLongestLabel = 63;

std::unexpected<Error> invalid(const char* reason) {
    return fail(ErrorCode::invalid_argument, reason);
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// What resolvers take for a part of an address: digits, or 0x and hexadecimal digits or nothing.
bool is_number(std::string_view label) {
    if (std::ranges::all_of(label, is_digit)) return true;
    if (!label.starts_with("0x")) return false;
    return std::ranges::all_of(label.substr(2), [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

Result<std::string> canonical_name(std::string_view text) {
    if (text.empty()) return invalid("a host name is missing");
    if (text.size() > kLongestName) return invalid("a host name has at most 253 characters");
    std::string name(text);
    std::size_t begin = 0;
    for (std::size_t at = 0; at <= name.size(); ++at) {
        if (at == name.size() || name[at] == '.') {
            if (at == begin) return invalid("a host name has no empty labels and no dot at its end");
            if (at - begin > kLongestLabel)
                return invalid("a label of a host name has at most 63 characters");
            if (at < name.size()) begin = at + 1;
            continue;
        }
        char& c = name[at];
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        const bool letter = c >= 'a' && c <= 'z';
        if (static_cast<unsigned char>(c) >= 0x80)
            return invalid("international host names are written in their ASCII form, xn--…");
        if (!letter && !is_digit(c) && c != '-' && c != '_')
            return invalid("a host name has only letters, digits, '-', '_' and dots");
    }
    if (is_number(std::string_view(name).substr(begin)))
        return invalid(
            "an address has four decimal parts without leading zeros, and a host name does not end in a "
            "number");
    return name;
}

// Text with a colon in it: IPv6, of which the mapped form is IPv4.
Result<Host> parse_ipv6(std::string_view text) {
    in6_addr address{};
    const std::string zero_ended(text);
    if (zero_ended.size() != std::char_traits<char>::length(zero_ended.c_str()) ||
        ::inet_pton(AF_INET6, zero_ended.c_str(), &address) != 1)
        return invalid("not an IPv6 address");
    Host host;
    if (IN6_IS_ADDR_V4MAPPED(&address)) {
        host.kind = Host::Kind::ipv4;
        for (int i = 12; i < 16; ++i) host.address.value = host.address.value << 8 | address.s6_addr[i];
    } else {
        host.kind = Host::Kind::ipv6;
    }
    return host;
}

Result<std::uint16_t> parse_port(std::string_view text) {
    std::uint16_t port = 0;
    auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), port);
    const bool whole = ec == std::errc{} && end == text.data() + text.size();
    if (!whole || port == 0) return invalid("a port is a number from 1 to 65535");
    return port;
}

}  // namespace

Result<Host> parse_host(std::string_view text) {
    if (text.contains(':')) return parse_ipv6(text);
    Host host;
    if (auto address = parse_ipv4(text)) {
        host.kind = Host::Kind::ipv4;
        host.address = *address;
        return host;
    }
    GB_TRY_ASSIGN(host.name, canonical_name(text));
    return host;
}

Result<Authority> parse_authority(std::string_view text) {
    Authority out;
    std::string_view rest;
    if (text.starts_with('[')) {
        const std::size_t end = text.find(']');
        if (end == std::string_view::npos) return invalid("an IPv6 address stands between [ and ]");
        GB_TRY_ASSIGN(out.host, parse_ipv6(text.substr(1, end - 1)));
        rest = text.substr(end + 1);
    } else {
        const std::size_t colon = text.find(':');
        GB_TRY_ASSIGN(out.host, parse_host(text.substr(0, colon)));
        if (colon != std::string_view::npos) rest = text.substr(colon);
    }
    if (rest.empty()) return out;
    if (!rest.starts_with(':')) return invalid("only a port may follow a host");
    GB_TRY_ASSIGN(out.port, parse_port(rest.substr(1)));
    return out;
}

bool NamePattern::matches(std::string_view canonical) const {
    switch (kind) {
        case Kind::exact:
            return canonical == name;
        case Kind::below:
            return canonical.size() > name.size() + 1 && canonical.ends_with(name) &&
                   canonical[canonical.size() - name.size() - 1] == '.';
        case Kind::every:
            return true;
    }
    return false;
}

Result<NamePattern> parse_pattern(std::string_view text) {
    NamePattern pattern;
    if (text == "*") {
        pattern.kind = NamePattern::Kind::every;
        return pattern;
    }
    if (text.starts_with("*.")) {
        pattern.kind = NamePattern::Kind::below;
        text.remove_prefix(2);
    }
    GB_TRY_ASSIGN(pattern.name, canonical_name(text));
    return pattern;
}

std::string to_string(const NamePattern& pattern) {
    switch (pattern.kind) {
        case NamePattern::Kind::exact:
            return pattern.name;
        case NamePattern::Kind::below:
            return "*." + pattern.name;
        case NamePattern::Kind::every:
            return "*";
    }
    return "*";
}

}  // namespace gb::net
