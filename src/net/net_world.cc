// SPDX-License-Identifier: Apache-2.0
#include "net/net_world.h"

#include <cerrno>
#include <cstring>
#include <map>

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <poll.h>

#include "base/ids.h"
#include "base/internet_checksum.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "net/links.h"

namespace gb::net {
namespace {

constexpr int kTcpPorts[] = {22, 53, 80, 443, 853};
constexpr int kUdpPorts[] = {53, 123, 443};

sockaddr_in address_of(std::string_view address, int port) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_port = htons(static_cast<std::uint16_t>(port));
    ::inet_pton(AF_INET, std::string(address).c_str(), &out.sin_addr);
    return out;
}

UniqueFd listener(int type, int port) {
    UniqueFd fd(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::setsockopt(fd.get(), IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
    sockaddr_in any = address_of("0.0.0.0", port);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
    if (type == SOCK_STREAM) EXPECT_EQ(::listen(fd.get(), 64), 0);
    return fd;
}

// Answers from the address that was asked.
void echo_datagram(int fd) {
    char data[2048];
    char control[128];
    sockaddr_in peer{};
    iovec iov{data, sizeof data};
    msghdr message{.msg_name = &peer,
                   .msg_namelen = sizeof peer,
                   .msg_iov = &iov,
                   .msg_iovlen = 1,
                   .msg_control = control,
                   .msg_controllen = sizeof control,
                   .msg_flags = 0};
    ssize_t n = ::recvmsg(fd, &message, 0);
    if (n < 0) return;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_PKTINFO) continue;
        auto* info = reinterpret_cast<in_pktinfo*>(CMSG_DATA(c));
        info->ipi_spec_dst = info->ipi_addr;
        info->ipi_ifindex = 0;
    }
    iov.iov_len = static_cast<std::size_t>(n);
    ::sendmsg(fd, &message, 0);
}

int wait_for(int fd, short events, std::chrono::milliseconds patience) {
    pollfd p{fd, events, 0};
    return ::poll(&p, 1, static_cast<int>(patience.count()));
}

int socket_error(int fd) {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

std::uint16_t checksum(std::string_view data) {
    return internet_checksum(add_words(0, data.data(), data.size()));
}

}  // namespace

std::string NetWorld::command(const std::vector<std::string>& argv) {
    auto out = run_checked(argv);
    EXPECT_TRUE(out) << out.error().message;
    return out ? out->out : "";
}

std::string NetWorld::unique_instance() {
    return "test-" + random_id(16);
}

NetWorld::NetWorld() {
    log::set_level(log::Level::warn);
    auto host = NetnsScope::enter_new();
    EXPECT_TRUE(host) << host.error().message;
    host_.emplace(std::move(*host));
    auto internet = create_netns();
    EXPECT_TRUE(internet) << internet.error().message;
    internet_ = std::move(*internet);
    auto links = Links::open();
    EXPECT_TRUE(links->add_veth({.name = "wan0"}, {.name = "inet0", .netns_fd = internet_.get()}));
    command({"ip", "link", "set", "lo", "up"});
    command({"ip", "link", "set", "wan0", "up"});
    in_netns(internet_.get(), [] {
        command({"ip", "link", "set", "lo", "up"});
        command({"ip", "addr", "add", "203.0.113.10/24", "dev", "inet0"});
        command({"ip", "link", "set", "inet0", "up"});
        // Every address answers, the closed ones too: if a probe fails, it is a rule that stopped it.
        for (const char* block : {"1.0.0.0/8", "8.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16",
                                  "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15", "240.0.0.0/5"})
            command({"ip", "route", "add", "local", block, "dev", "lo"});
    });
    command({"ip", "addr", "add", "203.0.113.1/24", "dev", "wan0"});
    command({"ip", "route", "add", "default", "via", "203.0.113.10"});
    server_ = std::thread([this] {
        auto scope = NetnsScope::enter(internet_.get());
        serve();
    });
}

NetWorld::~NetWorld() {
    stopping_ = true;
    server_.join();
}

void NetWorld::serve() {
    std::map<int, UniqueFd> tcp, udp, connections;
    auto keep = [](std::map<int, UniqueFd>& where, UniqueFd fd) {
        int key = fd.get();
        where.emplace(key, std::move(fd));
    };
    for (int port : kTcpPorts) keep(tcp, listener(SOCK_STREAM, port));
    for (int port : kUdpPorts) keep(udp, listener(SOCK_DGRAM, port));
    while (!stopping_) {
        std::vector<pollfd> fds;
        for (auto* group : {&tcp, &udp, &connections})
            for (auto& [fd, owner] : *group) fds.push_back({fd, POLLIN, 0});
        if (::poll(fds.data(), fds.size(), 20) <= 0) continue;
        for (const pollfd& p : fds) {
            if (p.revents == 0) continue;
            if (tcp.contains(p.fd)) {
                UniqueFd accepted(::accept4(p.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
                if (accepted) keep(connections, std::move(accepted));
            } else if (udp.contains(p.fd)) {
                echo_datagram(p.fd);
            } else {
                char data[2048];
                ssize_t n = ::read(p.fd, data, sizeof data);
                if (n <= 0)
                    connections.erase(p.fd);
                else [[maybe_unused]]
                    ssize_t written = ::send(p.fd, data, static_cast<std::size_t>(n), MSG_NOSIGNAL);
            }
        }
    }
}

int tcp_probe(std::string_view address, int port, std::chrono::milliseconds patience) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in to = address_of(address, port);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 && errno != EINPROGRESS)
        return errno;
    if (wait_for(fd.get(), POLLOUT, patience) == 0) return ETIMEDOUT;
    return socket_error(fd.get());
}

int udp_probe(std::string_view address, int port) {
    UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_BROADCAST, &on, sizeof on);
    sockaddr_in to = address_of(address, port);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return errno;
    if (::send(fd.get(), "ask", 3, 0) < 0) return errno;
    if (wait_for(fd.get(), POLLIN, kPatience) == 0) return ETIMEDOUT;
    char answer[16];
    return ::recv(fd.get(), answer, sizeof answer, 0) == 3 ? 0 : errno;
}

int icmp_probe(std::string_view address) {
    UniqueFd fd(::socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_ICMP));
    sockaddr_in to = address_of(address, 0);
    std::string packet(16, '\0');
    packet[0] = ICMP_ECHO;
    packet[5] = 7;  // id
    std::uint16_t sum = htons(checksum(packet));
    std::memcpy(packet.data() + 2, &sum, sizeof sum);
    if (::sendto(fd.get(), packet.data(), packet.size(), 0, reinterpret_cast<sockaddr*>(&to), sizeof to) < 0)
        return errno;
    while (wait_for(fd.get(), POLLIN, kPatience) > 0) {
        char answer[512];
        ssize_t n = ::recv(fd.get(), answer, sizeof answer, 0);
        if (n < 28) continue;
        if (answer[20] == ICMP_ECHOREPLY) return 0;
        if (answer[20] == ICMP_DEST_UNREACH) return EHOSTUNREACH;
    }
    return ETIMEDOUT;
}

void send_udp(std::string_view address, int port, int count) {
    UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in to = address_of(address, port);
    for (int i = 0; i < count; ++i)
        ::sendto(fd.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&to), sizeof to);
}

void send_raw(std::string_view source, std::string_view destination, std::uint8_t protocol,
              std::string payload) {
    UniqueFd fd(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
    ASSERT_TRUE(fd.valid());
    int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_BROADCAST, &on, sizeof on);
    sockaddr_in from = address_of(source, 0);
    sockaddr_in to = address_of(destination, 0);
    if (protocol == IPPROTO_TCP) {
        std::string pseudo;
        pseudo.append(reinterpret_cast<const char*>(&from.sin_addr), 4);
        pseudo.append(reinterpret_cast<const char*>(&to.sin_addr), 4);
        pseudo += {0, IPPROTO_TCP, 0, static_cast<char>(payload.size())};
        std::uint16_t sum = htons(checksum(pseudo + payload));
        std::memcpy(payload.data() + 16, &sum, sizeof sum);
    }
    iphdr header{};
    header.version = 4;
    header.ihl = 5;
    header.ttl = 64;
    header.protocol = protocol;
    header.saddr = from.sin_addr.s_addr;
    header.daddr = to.sin_addr.s_addr;
    std::string packet(reinterpret_cast<const char*>(&header), sizeof header);
    packet += payload;
    ssize_t n =
        ::sendto(fd.get(), packet.data(), packet.size(), 0, reinterpret_cast<sockaddr*>(&to), sizeof to);
    EXPECT_EQ(n, static_cast<ssize_t>(packet.size())) << ::strerror(errno);
}

std::string tcp_header(int source_port, int port, std::uint8_t flags) {
    std::string out(20, '\0');
    out[0] = static_cast<char>(source_port >> 8);
    out[1] = static_cast<char>(source_port);
    out[2] = static_cast<char>(port >> 8);
    out[3] = static_cast<char>(port);
    out[7] = 1;      // sequence
    out[11] = 1;     // acknowledgement
    out[12] = 0x50;  // five words
    out[13] = static_cast<char>(flags);
    out[14] = 4;  // window
    return out;
}

UniqueFd tcp_connect(std::string_view address, int port) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    timeval limit{.tv_sec = 1, .tv_usec = 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    sockaddr_in to = address_of(address, port);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) fd.reset();
    return fd;
}

int echo(int fd, std::string_view text) {
    if (::send(fd, text.data(), text.size(), MSG_NOSIGNAL) < 0) return errno;
    char answer[256];
    ssize_t n = ::recv(fd, answer, sizeof answer, 0);
    if (n < 0) return errno == EAGAIN ? ETIMEDOUT : errno;
    return std::string_view(answer, static_cast<std::size_t>(n)) == text ? 0 : EPROTO;
}

std::vector<Decision> decisions_of(Slot& slot) {
    std::vector<Decision> out;
    while (wait_for(slot.decision_fd(), POLLIN, std::chrono::milliseconds(120)) > 0)
        for (Decision& decision : slot.read_decisions())
            if (decision.verdict != Verdict::end) out.push_back(std::move(decision));
    return out;
}

std::vector<Decision> ends_of(Slot& slot, std::size_t count, std::chrono::milliseconds patience) {
    std::vector<Decision> out;
    while (out.size() < count && wait_for(slot.flow_fd(), POLLIN, patience) > 0)
        for (Decision& decision : slot.read_decisions())
            if (decision.verdict == Verdict::end) out.push_back(std::move(decision));
    return out;
}

std::vector<HostDecision> decisions_of(HostNetwork& host) {
    std::vector<HostDecision> out;
    while (wait_for(host.decision_fd(), POLLIN, std::chrono::milliseconds(120)) > 0)
        for (HostDecision& decision : host.read_decisions()) out.push_back(std::move(decision));
    return out;
}

std::string brief(const Decision& d) {
    return fmt::format("{} {} {} {} {}", to_string(d.verdict), protocol_name(d.protocol), d.address, d.port,
                       d.rule);
}

std::vector<std::string> brief(const std::vector<Decision>& decisions) {
    std::vector<std::string> out;
    for (const Decision& decision : decisions) out.push_back(brief(decision));
    return out;
}

}  // namespace gb::net
