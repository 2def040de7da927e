// SPDX-License-Identifier: Apache-2.0
// The one parser for names of hosts, wherever they stand: a client's rules, SNI, Host, DNS questions. What it
// accepts has one spelling, so no two parts of this server can take one text for two hosts. Pure.
//
// A name is lower-case ASCII of letters, digits, '-' and '_' in labels of 1 to 63 and 253 in all (RFC 1035),
// without a trailing dot, and its last label is neither a number nor 0x…: resolvers take those for addresses
// (WHATWG URL, "ends in a number"). International names are written in their ASCII form, xn--…. Everything
// else is an error: NUL and other control characters, blanks, "%", bytes of UTF-8, empty labels, 127.1,
// 0x7f.0.0.1, 2130706433, 010.0.0.1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/cidr.h"

namespace gb::net {

struct Host {
    enum class Kind { name, ipv4, ipv6 } kind = Kind::name;
    std::string name;  // Kind::name only, canonical
    Ipv4 address;      // Kind::ipv4 only; also of ::ffff:a.b.c.d
    bool operator==(const Host&) const = default;
};

// Without port or brackets, upper case is folded. Errors: invalid_argument with a reason that does not quote
// the text.
Result<Host> parse_host(std::string_view text);

// As in the header Host (RFC 9110 7.2): host, host:port, [IPv6], [IPv6]:port.
struct Authority {
    Host host;
    std::optional<std::uint16_t> port;
};
Result<Authority> parse_authority(std::string_view text);

// What a rule says of names: "example.com" itself, "*.example.com" all names below it and not itself, "*"
// every name.
struct NamePattern {
    enum class Kind { exact, below, every } kind = Kind::exact;
    std::string name;  // canonical; empty for every
    [[nodiscard]] bool matches(std::string_view canonical) const;
    bool operator==(const NamePattern&) const = default;
};
Result<NamePattern> parse_pattern(std::string_view text);
std::string to_string(const NamePattern& pattern);

}  // namespace gb::net
