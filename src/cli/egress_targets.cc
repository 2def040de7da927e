// SPDX-License-Identifier: Apache-2.0
#include "cli/egress_targets.h"

#include <algorithm>
#include <variant>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "cli/destinations.h"
#include "net/slot_rules.h"

namespace gb::cli {
namespace {

namespace json = boost::json;
using probe::Probe;
using probe::Way;

constexpr std::uint16_t kAgentPort = 49983, kDiscardPort = 9;
constexpr const char* kIpv6 = "2606:4700:4700::1111";
constexpr const char* kForeignSource = "198.18.0.1";  // RFC 2544: nobody's
constexpr const char* kUnlisted = "glovebox-proof.example.org";

std::vector<std::string> texts_of(const json::object& object, const char* field) {
    std::vector<std::string> out;
    const json::value* list = object.if_contains(field);
    if (list == nullptr || !list->is_array()) return out;
    for (const json::value& item : list->get_array())
        if (item.is_string()) out.emplace_back(item.get_string());
    return out;
}

class Builder {
  public:
    Builder(const PolicyInForce& in_force, const Surroundings& around)
        : in_force_(in_force), around_(around), sets_(net::packet_sets(in_force.policy, in_force.ceiling)) {}

    std::vector<Target> build() {
        for (const net::Ipv4 address : around_.addresses) public_address(to_string(address), address);
        for (const auto& [name, address] : around_.names) by_name(name, address);
        first_address();
        closed_places();
        return std::move(targets_);
    }

  private:
    [[nodiscard]] net::Ruling of_address(net::Ipv4 address) const {
        return net::judge(in_force_.policy, in_force_.ceiling, address);
    }
    // Protocols whose packets go by their address, if they go at all.
    [[nodiscard]] net::Ruling of_packet(net::Ipv4 address, bool is_udp, std::uint16_t port) const {
        net::Ruling out = of_address(address);
        if (!out.allowed()) return out;
        const auto deny = [](const char* rule) { return net::Ruling{net::Verdict::deny, rule}; };
        if (net::within(sets_.tunneled, address)) return deny("proxy-only");
        if (is_udp && net::within(sets_.udp_closed, address)) return deny("udp-closed");
        if (is_udp && port == 443 && net::within(sets_.quic_closed, address)) return deny("udp-closed");
        return out;
    }
    // TLS and HTTP that name a host, to an address that may be another's.
    [[nodiscard]] net::Ruling of_name_at(const std::string& name, std::optional<net::Ipv4> address) const {
        net::Ruling named = net::judge_name(in_force_.policy, in_force_.ceiling, name);
        if (named.rule.starts_with("closed") || !address) return named;
        const auto known = around_.names.find(name);
        if (known != around_.names.end() && known->second == address)
            return net::judge(in_force_.policy, in_force_.ceiling, *address, name);
        return of_address(*address);
    }

    Target& add(std::string what, Probe inside, const net::Ruling& ruling, const char* log_protocol) {
        Target target;
        target.what = std::move(what);
        const std::string& place = inside.address.empty() ? inside.name : inside.address;
        const bool has_port = inside.way != Way::icmp && inside.way != Way::raw &&
                              inside.way != Way::dns_udp && inside.way != Way::dns_tcp;
        target.destination = has_port ? fmt::format("{} port {}", place, inside.port) : place;
        target.allowed = ruling.allowed();
        target.rule = ruling.rule;
        target.log_protocol = log_protocol;
        target.log_address = inside.address;
        target.log_name = inside.way == Way::spoofed ? "" : inside.name;
        target.log_port = has_port ? inside.port : std::uint16_t{0};
        target.inside = inside;
        target.control = std::move(inside);
        targets_.push_back(std::move(target));
        return targets_.back();
    }

    void public_address(const std::string& text, net::Ipv4 address) {
        for (const std::uint16_t port : {22, 25, 8443})
            add("TCP", {Way::tcp, text, port, "", ""}, of_address(address), "tcp");
        add("HTTP without a name", {Way::http, text, 80, "", ""}, of_address(address), "tcp");
        add("TLS without a name", {Way::tls, text, 443, "", ""}, of_address(address), "tcp");
        add("DNS over TLS", {Way::tcp, text, 853, "", ""}, of_address(address), "tcp");
        add("UDP, time", {Way::udp, text, 123, "", ""}, of_packet(address, true, 123), "udp");
        add("QUIC", {Way::quic, text, 443, "", ""}, of_packet(address, true, 443), "udp");
        add("ICMP echo", {Way::icmp, text, 0, "", ""}, of_packet(address, false, 0), "icmp");
        for (const auto& [name, known] : around_.names)
            add("TLS, name of another", {Way::tls, text, 443, name, ""}, of_name_at(name, address), "tcp")
                .destination = fmt::format("{} as {}", text, name);
    }

    void by_name(const std::string& name, std::optional<net::Ipv4> address) {
        const net::Ruling ruling = net::judge_name(in_force_.policy, in_force_.ceiling, name);
        // Questions are answered by the sandbox's own resolver, whoever was asked.
        const std::string elsewhere =
            around_.addresses.empty() ? to_string(net::kTapAddress) : to_string(around_.addresses.front());
        const std::string own = in_force_.resolvers.empty() ? "" : in_force_.resolvers.front();
        // An answer that nobody may have is no answer, whatever the question was.
        const bool answered = !address || !net::closed_to_all(in_force_.ceiling, *address);
        for (const Way way : {Way::dns_udp, Way::dns_tcp}) {
            if (!answered) break;
            Target& target = add(way == Way::dns_udp ? "DNS" : "DNS over TCP", {way, elsewhere, 53, name, ""},
                                 ruling, "dns");
            target.destination = fmt::format("{} for {}", elsewhere, name);
            target.log_address.clear();
            target.control = own.empty() ? std::nullopt : std::optional(Probe{way, own, 53, name, ""});
        }
        const net::Ruling reached = in_force_.policy.proxy ? ruling : of_name_at(name, address);
        for (const Way way : {Way::http, Way::tls}) {
            const std::uint16_t port = way == Way::http ? 80 : 443;
            Target& target =
                add(way == Way::http ? "HTTP" : "TLS", {way, "", port, name, elsewhere}, reached, "tcp");
            if (!in_force_.policy.proxy) {
                if (address) {
                    target.log_address = to_string(*address);
                } else {  // no connection, only a question
                    target.log_protocol = "dns";
                    target.log_port = 0;
                }
            }
            target.control = Probe{way, address ? to_string(*address) : "", port, name, own};
            if (!address && own.empty()) target.control.reset();
        }
    }

    // What one address is enough for.
    void first_address() {
        if (around_.addresses.empty()) return;
        const net::Ipv4 address = around_.addresses.front();
        const std::string text = to_string(address);
        add("IP protocol 47 (GRE)", {Way::raw, text, 47, "", ""}, of_packet(address, false, 0), "47");
        // RFC 3692: for experiments.
        add("IP protocol 253", {Way::raw, text, 253, "", ""}, of_packet(address, false, 0), "253");
        const net::Ruling spoofed{net::Verdict::deny, "spoofed-source"};
        add("UDP with another's source", {Way::spoofed, text, kDiscardPort, kForeignSource, ""}, spoofed,
            "udp")
            .control.reset();
        add("IPv6", {Way::ipv6, kIpv6, 443, "", ""}, {net::Verdict::deny, "ipv6"}, "tcp");
    }

    void closed_places() {
        const net::Ruling host{net::Verdict::deny, "host"};
        add("cloud metadata", {Way::http, "169.254.169.254", 80, "", ""},
            of_address(*net::parse_ipv4("169.254.169.254")), "tcp");
        for (const char* text : {"10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1"})
            add("private range", {Way::tcp, text, 80, "", ""}, of_address(*net::parse_ipv4(text)), "tcp");
        std::vector<net::Ipv4> places{net::kTapAddress};
        places.insert(places.end(), around_.host.begin(), around_.host.end());
        for (const net::Ipv4 place : places) {
            const std::string text = to_string(place);
            for (const std::uint16_t port : {around_.server_port, std::uint16_t{22}})
                add("the host", {Way::tcp, text, port, "", ""}, host, "tcp");
            add("the host", {Way::icmp, text, 0, "", ""}, host, "icmp");
        }
        // Where its own connections by name arrive.
        add("the proxy itself", {Way::tcp, to_string(net::kTapAddress), net::kProxyPort, "", ""}, host, "tcp")
            .control.reset();
        for (const net::Ipv4 slot : around_.slots)
            add("another sandbox", {Way::tcp, to_string(slot), kAgentPort, "", ""}, host, "tcp");
    }

    const PolicyInForce& in_force_;
    const Surroundings& around_;
    net::PacketSets sets_;
    std::vector<Target> targets_;
};

}  // namespace

Result<PolicyInForce> read_policy_in_force(const json::value& answer) {
    const json::object* object = answer.if_object();
    const json::value* running = object != nullptr ? object->if_contains("inForce") : nullptr;
    if (running == nullptr || !running->is_bool())
        return fail(ErrorCode::internal, "the server does not say what is in force");
    if (!running->get_bool())
        return fail(ErrorCode::failed_precondition,
                    "the sandbox does not run: resume it with `glovebox sandbox resume`");
    net::NetworkRequest request;
    request.allow_out = texts_of(*object, "allowOut");
    request.deny_out = texts_of(*object, "denyOut");
    if (const json::value* proxy = object->if_contains("egressProxy"); proxy != nullptr && proxy->is_string())
        request.egress_proxy = net::ProxyRequest{std::string(proxy->get_string()), "", ""};
    PolicyInForce out;
    GB_TRY_ASSIGN(out.policy, net::parse_policy(request));
    const json::value* mode = object->if_contains("mode");
    out.ceiling.only_listed = mode != nullptr && mode->is_string() && mode->get_string() == "closed";
    GB_TRY(split_destinations(texts_of(*object, "closed"), "closed", out.ceiling.closed,
                              out.ceiling.closed_names));
    GB_TRY(split_destinations(texts_of(*object, "open"), "open", out.ceiling.open, out.ceiling.open_names));
    for (const std::string& resolver : texts_of(*object, "resolvers"))
        out.resolvers.push_back(resolver.substr(0, resolver.find(':')));
    return out;
}

std::vector<std::string> names_to_try(const PolicyInForce& in_force) {
    std::vector<std::string> out{kUnlisted};
    const auto add = [&](const std::vector<net::NamePattern>& patterns) {
        for (const net::NamePattern& pattern : patterns) {
            if (pattern.kind == net::NamePattern::Kind::exact) out.push_back(pattern.name);
            if (pattern.kind == net::NamePattern::Kind::below) out.push_back("proof." + pattern.name);
        }
    };
    add(in_force.policy.names);
    add(in_force.ceiling.closed_names);
    add(in_force.ceiling.open_names);
    std::ranges::sort(out);
    const auto rest = std::ranges::unique(out);
    out.erase(rest.begin(), rest.end());
    return out;
}

std::vector<Target> egress_targets(const PolicyInForce& in_force, const Surroundings& around) {
    return Builder(in_force, around).build();
}

}  // namespace gb::cli
