// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "probe/payloads.h"
#include "probe/probe.h"
#include "probe/sockets.h"
#include "probe/tls_probe.h"

namespace gb::probe {
namespace {

constexpr std::uint16_t kDnsPort = 53;
// A proxy that refuses does it at once.
constexpr Patience kCutLimit{700};

Outcome open(std::string detail) {
    return {State::open, std::move(detail), ""};
}
Outcome closed(std::string detail) {
    return {State::closed, std::move(detail), ""};
}
// Of a socket that this process may not even make.
Outcome without(const Error& error) {
    return {error.code == ErrorCode::permission_denied || error.code == ErrorCode::unimplemented
                ? State::not_tried
                : State::closed,
            error.message, ""};
}

std::uint16_t some_id() {
    static std::atomic<std::uint16_t> next = static_cast<std::uint16_t>(::getpid());
    return next++;
}

Result<DnsAnswer> ask(const std::string& server, const std::string& name, bool by_tcp, Patience patience) {
    const std::uint16_t id = some_id();
    std::string question = dns_question(name, id);
    if (question.empty()) return fail(ErrorCode::invalid_argument, "no name");
    UniqueFd fd;
    std::string answer;
    if (by_tcp) {
        GB_TRY_ASSIGN(fd, connect_tcp(server, kDnsPort, patience));
        question.insert(
            0, {static_cast<char>(question.size() >> 8U), static_cast<char>(question.size() & 0xffU)});
        GB_TRY(send_all(fd.get(), question, patience));
        const auto wanted = [&]() -> std::size_t {
            if (answer.size() < 2) return 2;
            return 2U + (static_cast<std::uint8_t>(answer[0]) << 8U) + static_cast<std::uint8_t>(answer[1]);
        };
        while (answer.size() < wanted()) {
            GB_TRY_ASSIGN(const std::string more, receive(fd.get(), patience));
            if (more.empty()) return fail(ErrorCode::unavailable, "cut");
            answer += more;
        }
        answer.erase(0, 2);
    } else {
        GB_TRY_ASSIGN(fd, connect_datagram(SOCK_DGRAM, 0, server, kDnsPort));
        GB_TRY(send_all(fd.get(), question, patience));
        GB_TRY_ASSIGN(answer, receive(fd.get(), patience));
    }
    DnsAnswer out = read_dns_answer(answer, id);
    if (!out.good) return fail(ErrorCode::data_loss, "not an answer");
    return out;
}

Outcome attempt_dns(const Probe& probe, Patience patience) {
    auto answer = ask(probe.address, probe.name, probe.way == Way::dns_tcp, patience);
    if (!answer) return closed(answer.error().message);
    if (answer->code == 3) return closed("no such name");
    if (answer->code != 0) return closed(fmt::format("refused, code {}", answer->code));
    if (answer->addresses.empty()) return closed("no addresses");
    Outcome out = open(answer->addresses.front());
    out.address = answer->addresses.front();
    return out;
}

// Whatever the other end says, or its silence: not the end of the connection.
Outcome attempt_tcp(const Probe& probe, Patience patience) {
    auto fd = connect_tcp(probe.address, probe.port, patience);
    if (!fd) return without(fd.error());
    auto more = receive(fd->get(), std::min(patience, kCutLimit));
    if (!more && more.error().code != ErrorCode::deadline_exceeded)
        return closed("cut: " + more.error().message);
    if (more && more->empty()) return closed("ended at once");
    return open("connected");
}

Outcome attempt_http(const std::string& address, const Probe& probe, Patience patience) {
    auto fd = connect_tcp(address, probe.port, patience);
    if (!fd) return closed(fd.error().message);
    const std::string request = fmt::format("HEAD / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
                                            probe.name.empty() ? address : probe.name);
    if (auto sent = send_all(fd->get(), request, patience); !sent) return closed(sent.error().message);
    auto answer = receive(fd->get(), patience);
    if (!answer) return closed(answer.error().message);
    if (answer->empty()) return closed("ended without an answer");
    const std::string line = answer->substr(0, answer->find('\r'));
    // The word of the proxy on the way, and of nobody further away.
    if (answer->contains("\r\nProxy-Status: glovebox;")) return closed(line);
    return open(line);
}

Outcome attempt_tls(const std::string& address, const Probe& probe, Patience patience) {
    auto fd = connect_tcp(address, probe.port, patience);
    if (!fd) return closed(fd.error().message);
    auto done = shake_hands(fd->get(), probe.name, patience);
    return done ? open(*done) : closed(done.error().message);
}

// Ways that a name is looked up for, unless the probe brings the address.
Outcome attempt_by_name(const Probe& probe, Patience patience) {
    std::string address = probe.address;
    if (address.empty()) {
        auto answer = ask(probe.resolver, probe.name, false, patience);
        if (!answer) return closed("name: " + answer.error().message);
        if (answer->addresses.empty()) return closed("it has no address");
        address = answer->addresses.front();
    }
    Outcome out = probe.way == Way::http ? attempt_http(address, probe, patience)
                                         : attempt_tls(address, probe, patience);
    out.address = address;
    return out;
}

Outcome attempt_datagram(const Probe& probe, const std::string& payload, Patience patience) {
    auto fd = connect_datagram(SOCK_DGRAM, 0, probe.address, probe.port);
    if (!fd) return closed(fd.error().message);
    if (auto sent = send_all(fd->get(), payload, patience); !sent) return closed(sent.error().message);
    auto answer = receive(fd->get(), patience);
    return answer ? open("answered") : closed(answer.error().message);
}

Outcome attempt_icmp(const Probe& probe, Patience patience) {
    auto fd = connect_datagram(SOCK_RAW, IPPROTO_ICMP, probe.address, 0);
    if (!fd) return without(fd.error());
    const std::uint16_t id = some_id();
    if (auto sent = send_all(fd->get(), echo_request(id), patience); !sent)
        return closed(sent.error().message);
    for (int packets = 0; packets < 16; ++packets) {
        auto answer = receive(fd->get(), patience);
        if (!answer) return closed(answer.error().message);
        if (is_echo_reply(*answer, id)) return open("answered");
    }
    return closed("no answer among others");
}

Outcome attempt_raw(const Probe& probe, Patience patience) {
    auto fd = connect_datagram(SOCK_RAW, probe.port, probe.address, 0);
    if (!fd) return without(fd.error());
    if (auto sent = send_all(fd->get(), "glovebox probe", patience); !sent)
        return closed(sent.error().message);
    auto answer = receive(fd->get(), std::min(patience, kCutLimit));
    if (!answer && answer.error().code != ErrorCode::deadline_exceeded) return closed(answer.error().message);
    return {State::sent, answer ? "answered" : "nothing came back", ""};
}

// UDP with a header of our own; the kernel fills in lengths and checksums.
Outcome attempt_spoofed(const Probe& probe, Patience patience) {
    auto fd = connect_datagram(SOCK_RAW, IPPROTO_RAW, probe.address, 0);
    if (!fd) return without(fd.error());
    std::string packet(sizeof(iphdr) + sizeof(udphdr), '\0');
    iphdr ip{};
    ip.version = 4;
    ip.ihl = 5;
    ip.ttl = 64;
    ip.protocol = IPPROTO_UDP;
    if (::inet_pton(AF_INET, probe.name.c_str(), &ip.saddr) != 1 ||
        ::inet_pton(AF_INET, probe.address.c_str(), &ip.daddr) != 1)
        return {State::not_tried, "no addresses", ""};
    udphdr udp{};
    udp.source = htons(9);
    udp.dest = htons(probe.port);
    udp.len = htons(sizeof udp);
    std::memcpy(packet.data(), &ip, sizeof ip);
    std::memcpy(packet.data() + sizeof ip, &udp, sizeof udp);
    if (auto sent = send_all(fd->get(), packet, patience); !sent) return closed(sent.error().message);
    return {State::sent, "as " + probe.name, ""};
}

// The first device that is not loopback.
int first_device() {
    const std::unique_ptr<struct if_nameindex, decltype(&::if_freenameindex)> list(::if_nameindex(),
                                                                                   ::if_freenameindex);
    for (const struct if_nameindex* one = list.get(); one != nullptr && one->if_index != 0; ++one)
        if (std::string_view(one->if_name) != "lo") return static_cast<int>(one->if_index);
    return 0;
}

// A network without IPv6 keeps no frame from being sent.
Outcome attempt_ipv6(const Probe& probe, Patience patience) {
    Outcome by_socket = attempt_tcp(probe, patience);
    if (by_socket.state == State::open) return by_socket;
    const UniqueFd fd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IPV6)));
    if (!fd) return by_socket;
    ip6_hdr ip{};
    ip.ip6_flow = htonl(6U << 28U);
    ip.ip6_plen = htons(sizeof(tcphdr));
    ip.ip6_nxt = IPPROTO_TCP;
    ip.ip6_hlim = 64;
    ::inet_pton(AF_INET6, "fd00::2", &ip.ip6_src);
    if (::inet_pton(AF_INET6, probe.address.c_str(), &ip.ip6_dst) != 1) return by_socket;
    tcphdr tcp{};
    tcp.source = htons(40'000);
    tcp.dest = htons(probe.port);
    tcp.doff = sizeof tcp / 4;
    tcp.syn = 1;
    std::string packet(sizeof ip + sizeof tcp, '\0');
    std::memcpy(packet.data(), &ip, sizeof ip);
    std::memcpy(packet.data() + sizeof ip, &tcp, sizeof tcp);
    sockaddr_ll to{};
    to.sll_family = AF_PACKET;
    to.sll_protocol = htons(ETH_P_IPV6);
    to.sll_ifindex = first_device();
    to.sll_halen = ETH_ALEN;
    std::ranges::fill_n(to.sll_addr, ETH_ALEN, std::uint8_t{0xff});
    if (::sendto(fd.get(), packet.data(), packet.size(), 0, reinterpret_cast<const sockaddr*>(&to),
                 sizeof to) < 0)
        return by_socket;
    return {State::sent, by_socket.detail + "; a frame", ""};
}

}  // namespace

Outcome attempt(const Probe& probe, std::chrono::milliseconds patience) {
    switch (probe.way) {
        case Way::tcp:
            return attempt_tcp(probe, patience);
        case Way::ipv6:
            return attempt_ipv6(probe, patience);
        case Way::http:
        case Way::tls:
            return attempt_by_name(probe, patience);
        case Way::udp:
            return attempt_datagram(probe, time_request(), patience);
        case Way::quic:
            return attempt_datagram(probe, quic_packet(), patience);
        case Way::icmp:
            return attempt_icmp(probe, patience);
        case Way::dns_udp:
        case Way::dns_tcp:
            return attempt_dns(probe, patience);
        case Way::raw:
            return attempt_raw(probe, patience);
        case Way::spoofed:
            return attempt_spoofed(probe, patience);
    }
    return {};
}

std::vector<Outcome> attempt_all(std::span<const Probe> probes, std::chrono::milliseconds patience) {
    constexpr std::size_t kAtOnce = 16;
    std::vector<Outcome> out(probes.size());
    std::atomic<std::size_t> next = 0;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < std::min(kAtOnce, probes.size()); ++i)
        threads.emplace_back([&] {
            for (std::size_t at = next++; at < probes.size(); at = next++)
                out[at] = attempt(probes[at], patience);
        });
    threads.clear();
    return out;
}

}  // namespace gb::probe
