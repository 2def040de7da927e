// SPDX-License-Identifier: Apache-2.0
#include "net/decision.h"

#include <netinet/in.h>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"

namespace gb::net {

bool has_ports(std::uint8_t protocol) {
    return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP ||
           protocol == IPPROTO_UDPLITE;
}

std::string protocol_name(std::uint8_t protocol) {
    switch (protocol) {
        case IPPROTO_ICMP:
            return "icmp";
        case IPPROTO_TCP:
            return "tcp";
        case IPPROTO_UDP:
            return "udp";
        case IPPROTO_UDPLITE:
            return "udplite";
        case IPPROTO_ICMPV6:
            return "icmpv6";
        case IPPROTO_SCTP:
            return "sctp";
        default:
            return fmt::format("{}", protocol);
    }
}

std::string decision_line(const Decision& decision) {
    const bool asks = !decision.question.empty();
    std::string out =
        fmt::format(R"({{"time":"{}","verdict":"{}","protocol":"{}")", rfc3339(decision.time_ms),
                    to_string(decision.verdict), asks ? "dns" : protocol_name(decision.protocol));
    if (!asks) out += fmt::format(R"(,"address":{})", log::json_quote(decision.address));
    if (!decision.name.empty()) out += fmt::format(R"(,"name":{})", log::json_quote(decision.name));
    if (!decision.question.empty())
        out += fmt::format(R"(,"question":{})", log::json_quote(decision.question));
    if (!asks && has_ports(decision.protocol))
        out += fmt::format(R"(,"port":{},"source_port":{})", decision.port, decision.source_port);
    if (decision.protocol == IPPROTO_ICMP || decision.protocol == IPPROTO_ICMPV6)
        out += fmt::format(R"(,"icmp_type":{})", decision.icmp_type);
    if (decision.rule == "spoofed-source")
        out += fmt::format(R"(,"source":{})", log::json_quote(decision.source));
    if (decision.verdict == Verdict::end)
        out += fmt::format(R"(,"sent":{},"received":{})", decision.sent, decision.received);
    if (!decision.rule.empty()) out += fmt::format(R"(,"rule":{})", log::json_quote(decision.rule));
    out += "}\n";
    return out;
}

void name_rule(Decision& decision, const EgressPolicy& policy, const Ceiling& ceiling) {
    if (decision.rule != "allowed" && decision.rule != "denied" && decision.rule != "closed") return;
    auto address = parse_ipv4(decision.address);
    if (!address) return;
    Ruling ruling = judge(policy, ceiling, *address);
    // A policy that changed since the packet may rule otherwise; then the short name is all that is known.
    bool same = decision.rule == "allowed"  ? ruling.rule.starts_with("allow ")
                : decision.rule == "denied" ? ruling.rule.starts_with("deny ")
                                            : ruling.rule.starts_with("closed ");
    if (same) decision.rule = ruling.rule;
}

}  // namespace gb::net
