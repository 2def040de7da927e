// SPDX-License-Identifier: Apache-2.0
#include "net/host_rules.h"

#include <vector>

#include <fmt/format.h>

#include "net/address_block.h"
#include "net/policy.h"
#include "net/slot_rules.h"

namespace gb::net {
namespace {

// The first line makes sure that there is a table to delete.
constexpr std::string_view kRules = R"(
table inet {table}
delete table inet {table}
table inet {table} {{
    limit decisions {{ rate 200/second burst 500 packets; }}
    counter unlogged {{ }}
    set closed4 {{ type ipv4_addr; flags interval; elements = {closed} }}

    chain raw {{
        type filter hook prerouting priority raw; policy accept;
        iifname != "{links}*" accept
        meta nfproto ipv6 drop
        ip saddr != {block} goto spoofed
        fib saddr . iif oif missing goto spoofed
    }}
    chain spoofed {{
{log_spoofed}    }}

    chain input {{
        type filter hook input priority filter; policy accept;
        iifname != "{links}*" accept
        ct state established ct direction reply accept
{log_host}    }}

    chain forward {{
        type filter hook forward priority filter; policy accept;
        iifname "{links}*" jump from_slot
        oifname "{links}*" ct state established,related accept
        oifname "{links}*" drop
    }}
    chain from_slot {{
        oifname "{links}*" goto private
        ip daddr @closed4 goto private
        tcp flags & (syn | rst) == syn tcp option maxseg size set rt mtu
    }}
    chain private {{
{log_private}    }}

    chain source {{
        type nat hook postrouting priority srcnat; policy accept;
        ip saddr {block} oifname != "{links}*" masquerade
    }}
}}
)";

}  // namespace

std::string host_table(std::uint16_t tag) {
    return "glovebox_" + tag_text(tag);
}

std::string host_link_prefix(std::uint16_t tag) {
    return fmt::format("gb{}-", tag_text(tag));
}

std::uint16_t host_log_group(std::uint16_t tag) {
    return tag;
}

std::string host_rules(const HostRules& options) {
    std::vector<Cidr> closed(closed_ranges().begin(), closed_ranges().end());
    closed.insert(closed.end(), options.ceiling.begin(), options.ceiling.end());
    auto log = [&](std::string_view prefix) {
        return log_rules(prefix, host_log_group(options.tag), "drop");
    };
    return fmt::format(
        kRules, fmt::arg("table", host_table(options.tag)), fmt::arg("links", host_link_prefix(options.tag)),
        fmt::arg("block", to_string(options.block)), fmt::arg("closed", set_elements(closed)),
        fmt::arg("log_spoofed", log("deny spoofed-source")), fmt::arg("log_host", log("deny host-closed")),
        fmt::arg("log_private", log("deny private")));
}

}  // namespace gb::net
