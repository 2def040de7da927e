// SPDX-License-Identifier: Apache-2.0
#include "net/slot_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "net/policy.h"

namespace gb::net {
namespace {

constexpr std::string_view kLimits = R"(
    limit decisions { rate 200/second burst 500 packets; }
    counter unlogged { }
)";

// Neighbour discovery, router solicitation and multicast reports are what every kernel says on its own: no
// decision of the sandbox's, so no line.
constexpr std::string_view kFrames = R"(
table netdev glovebox {{{limits}
    chain frames {{
        type filter hook ingress device "tap0" priority -500; policy drop;
        ether type ip accept
        arp operation request accept
        ether type ip6 goto ipv6
    }}
    chain ipv6 {{
        icmpv6 type {{ mld-listener-query, mld-listener-report, mld-listener-done, mld2-listener-report, nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert }} drop
{log_ipv6}    }}
}}
)";

constexpr std::string_view kPackets = R"(
table inet glovebox {{{limits}
    set closed4 {{ type ipv4_addr; flags interval; elements = {closed} }}
    set ceiling4 {{ type ipv4_addr; flags interval; {ceiling} }}
    set beyond4 {{ type ipv4_addr; flags interval; {beyond} }}
    set allow4 {{ type ipv4_addr; flags interval; }}
    set deny4 {{ type ipv4_addr; flags interval; elements = {{ 0.0.0.0/0 }} }}
    set named4 {{ type ipv4_addr; flags interval; }}
    set tunneled4 {{ type ipv4_addr; flags interval; }}
    set udp4 {{ type ipv4_addr; flags interval; }}
    set quic4 {{ type ipv4_addr; flags interval; }}

    chain raw {{
        type filter hook prerouting priority raw; policy accept;
        iifname != "tap0" accept
        ip saddr != {guest} goto spoofed
        ip protocol igmp drop
        ip daddr {{ 0.0.0.0/8, 127.0.0.0/8, 224.0.0.0/4, 255.255.255.255 }} goto unroutable
    }}
    chain spoofed {{
{log_spoofed}    }}
    chain unroutable {{
{log_unroutable}    }}

    chain dispatch {{
        type nat hook prerouting priority dstnat; policy accept;
        iifname != "tap0" accept
        udp dport 53 redirect to :{dns_port}
        tcp dport 53 redirect to :{dns_port}
        ip daddr @closed4 accept
        ip daddr @ceiling4 accept
        tcp dport {{ 80, 443 }} ip daddr @named4 redirect to :{proxy_port}
        meta l4proto tcp ip daddr @tunneled4 redirect to :{proxy_port}
    }}

    chain input {{
        type filter hook input priority filter; policy drop;
        iifname "up0" ct state established ct direction reply accept
        iifname "up0" ct state related accept
        iifname != "tap0" drop
        ct state established,related ct direction reply accept
        ct status dnat goto served
        tcp flags & syn == 0 goto stale
{log_host}    }}
    chain served {{
        ct mark 1 accept
        jump connection
        accept
    }}

    chain output {{
        type filter hook output priority filter; policy accept;
        oifname != "up0" accept
        ip daddr @closed4 drop
        ip daddr @ceiling4 drop
    }}

    chain forward {{
        type filter hook forward priority filter; policy drop;
        iifname "tap0" oifname "up0" goto outward
        iifname "up0" oifname "tap0" ct state established,related goto inward
    }}
    chain inward {{
        ct original ip daddr @ceiling4 drop
        ct original ip daddr @beyond4 drop
        ct original ip daddr @tunneled4 drop
        meta l4proto udp ct original ip daddr @udp4 drop
        udp sport 443 ct original ip daddr @quic4 drop
        tcp sport {{ 80, 443 }} ct original ip daddr @named4 drop
        ct original ip daddr @allow4 accept
        ct original ip daddr @deny4 drop
        accept
    }}
    chain outward {{
        ip daddr @closed4 goto private
        ip daddr @ceiling4 goto closed
        ip daddr @beyond4 goto closed
        ip daddr @tunneled4 goto proxy_only
        meta l4proto udp ip daddr @udp4 goto udp_closed
        udp dport 443 ip daddr @quic4 goto udp_closed
        tcp dport {{ 80, 443 }} ip daddr @named4 goto by_name
        ip daddr @allow4 goto allowed
        ip daddr @deny4 goto denied
        ct mark 1 accept
        jump connection
{log_default}    }}
    chain allowed {{
        ct mark 1 accept
        jump connection
{log_allowed}    }}

    chain connection {{
        ct state invalid goto invalid
        tcp flags & syn == 0 goto stale
        ct count over {connections} goto crowded
        ct mark set 1
    }}
    chain invalid {{
{log_invalid}    }}
    chain stale {{
{log_stale}    }}
    chain crowded {{
{log_crowded}    }}
    chain private {{
{log_private}    }}
    chain closed {{
{log_closed}    }}
    chain denied {{
{log_denied}    }}
    chain proxy_only {{
{log_proxy_only}    }}
    chain udp_closed {{
{log_udp_closed}    }}
    chain by_name {{
{log_by_name}    }}
    chain refuse {{
        meta l4proto tcp reject with tcp reset
        limit rate 100/second burst 100 packets reject with icmpx admin-prohibited
        drop
    }}

    chain source {{
        type nat hook postrouting priority srcnat; policy accept;
        oifname "up0" snat ip to {slot}
    }}
}}
)";

std::string elements(std::span<const Cidr> blocks) {
    return blocks.empty() ? "" : "elements = " + set_elements(blocks);
}

}  // namespace

std::string log_rules(std::string_view prefix, std::uint16_t group, std::string_view verdict) {
    return fmt::format(
        "        limit name \"decisions\" log prefix \"{}\" group {} snaplen 96 {}\n"
        "        counter name \"unlogged\" {}\n",
        prefix, group, verdict, verdict);
}

std::string set_elements(std::span<const Cidr> blocks) {
    std::vector<std::string> parts;
    for (const Range& range : merge(blocks))
        parts.push_back(range.first == range.last
                            ? to_string(range.first)
                            : fmt::format("{}-{}", to_string(range.first), to_string(range.last)));
    return fmt::format("{{ {} }}", fmt::join(parts, ", "));
}

std::string slot_rules(const SlotRules& options) {
    auto log = [](std::string_view prefix, std::string_view verdict) {
        return log_rules(prefix, kSlotLogGroup, verdict);
    };
    std::string out =
        fmt::format(kFrames, fmt::arg("limits", kLimits), fmt::arg("log_ipv6", log("deny ipv6", "drop")));
    out += fmt::format(
        kPackets, fmt::arg("limits", kLimits), fmt::arg("closed", set_elements(closed_ranges())),
        fmt::arg("ceiling", elements(options.ceiling)), fmt::arg("beyond", elements(options.beyond)),
        fmt::arg("dns_port", kDnsPort), fmt::arg("proxy_port", kProxyPort),
        fmt::arg("guest", to_string(kGuestAddress)), fmt::arg("slot", to_string(options.slot_address)),
        fmt::arg("connections", options.max_connections),
        fmt::arg("log_spoofed", log("deny spoofed-source", "drop")),
        fmt::arg("log_unroutable", log("deny private", "drop")),
        fmt::arg("log_host", log("deny host-closed", "drop")),
        fmt::arg("log_default", log("allow default", "accept")),
        fmt::arg("log_allowed", log("allow allowed", "accept")),
        fmt::arg("log_invalid", log("deny invalid", "drop")),
        fmt::arg("log_stale", log("deny stale-connection", "goto refuse")),
        fmt::arg("log_crowded", log("deny too-many-connections", "goto refuse")),
        fmt::arg("log_private", log("deny private", "goto refuse")),
        fmt::arg("log_closed", log("deny closed", "goto refuse")),
        fmt::arg("log_denied", log("deny denied", "goto refuse")),
        fmt::arg("log_proxy_only", log("deny proxy-only", "goto refuse")),
        fmt::arg("log_udp_closed", log("deny udp-closed", "goto refuse")),
        fmt::arg("log_by_name", log("deny by-name", "goto refuse")));
    return out;
}

}  // namespace gb::net
