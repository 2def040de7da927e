// SPDX-License-Identifier: Apache-2.0
#include "egress/bench_world.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <poll.h>

#include "base/ids.h"
#include "base/subprocess.h"
#include "egress/dns_wire.h"
#include "net/links.h"
#include "net/nft.h"

namespace gb::egress {
namespace {

using namespace std::chrono_literals;
using net::Ipv4;
using net::Links;
using net::NetnsScope;

constexpr std::uint16_t kPort = 443, kNamePort = 53;
constexpr int kLink = 30;                                                // prefix of a link between two
constexpr Ipv4 kHostThere{0xcb007101}, kInternetHere{0xcb007102};        // 203.0.113.1 and .2
constexpr Ipv4 kLinkOfPlain{0xcb007104}, kLinkOfRelay{0xcb007108};       // 203.0.113.4 and .8
constexpr Ipv4 kBareHostInside{0x0ac80001}, kRouterOutside{0x0ac80002};  // 10.200.0.1 and .2
constexpr Ipv4 kRouterInside{0x0a0b0001}, kBareGuest{0x0a0b0002};        // as in a slot
constexpr std::size_t kSentAtOnce = 128 << 10;

UniqueFd bound(int type, std::uint16_t port) {
    UniqueFd fd(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in any{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) != 0) fd.reset();
    return fd;
}

bool readable(int fd) {
    pollfd p{fd, POLLIN, 0};
    return ::poll(&p, 1, 20) > 0;
}

// A host's own choice may pace what TCP sends by a clock: what is measured is the path. Every namespace may
// choose this one.
Status set_up_tcp() {
    return net::set_sysctl("net/ipv4/tcp_congestion_control", "reno");
}

Status address_and_up(Links& links, std::string_view name, Ipv4 address, int prefix) {
    GB_TRY_ASSIGN(int index, links.index(name));
    GB_TRY(links.add_address(index, address, prefix));
    return links.set_up(index);
}

Status default_route(Links& links, std::string_view name, Ipv4 gateway) {
    GB_TRY_ASSIGN(int index, links.index(name));
    return links.add_default_route(gateway, index);
}

net::EgressPolicy policy_of(std::vector<std::string> allowed) {
    return net::parse_policy({.allow_out = std::move(allowed), .deny_out = {"0.0.0.0/0"}}).value();
}

}  // namespace

Result<std::unique_ptr<BenchServer>> BenchServer::start(int netns, std::size_t hello_size) {
    GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter(netns));
    std::unique_ptr<BenchServer> out(new BenchServer());
    out->listener_ = bound(SOCK_STREAM, kPort);
    out->names_ = bound(SOCK_DGRAM, kNamePort);
    if (!out->listener_ || !out->names_ || ::listen(out->listener_.get(), 128) != 0)
        return fail_errno("listen in the internet");
    out->acceptor_ = std::thread([server = out.get(), hello_size] { server->accept(hello_size); });
    out->namer_ = std::thread([server = out.get()] { server->answer_names(); });
    return out;
}

BenchServer::~BenchServer() {
    stopping_ = true;
    if (acceptor_.joinable()) acceptor_.join();
    if (namer_.joinable()) namer_.join();
    for (Connection& connection : connections_) connection.thread.join();
}

void BenchServer::wait_idle() const {
    while (open_ > 0) std::this_thread::sleep_for(1ms);
}

void BenchServer::accept(std::size_t hello_size) {
    std::string hello(hello_size + 1, '\0');
    while (!stopping_) {
        std::erase_if(connections_, [](Connection& c) {
            if (c.ended) c.thread.join();
            return c.ended.load();
        });
        if (!readable(listener_.get())) continue;
        UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        const timeval patience{.tv_sec = 2, .tv_usec = 0};
        const int on = 1;
        ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (::recv(fd.get(), hello.data(), hello.size(), MSG_WAITALL) != static_cast<ssize_t>(hello.size()))
            continue;
        ++open_;
        Connection& connection = connections_.emplace_back();
        connection.thread = std::thread([this, &connection, fd = std::move(fd), ask = Ask(hello.back())] {
            serve(fd.get(), ask);
            --open_;
            connection.ended = true;
        });
    }
}

void BenchServer::serve(int fd, Ask ask) {
    std::vector<char> piece(kSentAtOnce);
    for (;;) {
        if (ask == Ask::give) {
            if (::send(fd, piece.data(), piece.size(), MSG_NOSIGNAL) <= 0) return;
            continue;
        }
        const ssize_t n = ::recv(fd, piece.data(), piece.size(), 0);
        if (n <= 0) return;
        taken_ += static_cast<std::uint64_t>(n);
        if (ask == Ask::echo && ::send(fd, piece.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL) != n)
            return;
    }
}

// Every name is the server's, for an hour.
void BenchServer::answer_names() {
    while (!stopping_) {
        if (!readable(names_.get())) continue;
        std::array<char, 512> query{};
        sockaddr_in peer{};
        socklen_t size = sizeof peer;
        auto* from = reinterpret_cast<sockaddr*>(&peer);
        const ssize_t n = ::recvfrom(names_.get(), query.data(), query.size(), 0, from, &size);
        if (n < 0) continue;
        wire::Reader reader(std::string_view(query.data(), static_cast<std::size_t>(n)));
        const auto header = reader.header();
        if (!header || !reader.name() || !reader.skip(4)) continue;
        std::string answer;
        wire::put_header(answer, {.id = header->id, .flags = 0x8180, .questions = 1, .answers = 1});
        answer += reader.message().substr(wire::kHeaderSize, reader.position() - wire::kHeaderSize);
        wire::put_u16(answer, 0xc000 | wire::kHeaderSize);  // the name of the question
        wire::put_u16(answer, static_cast<std::uint16_t>(DnsType::a));
        wire::put_u16(answer, wire::kClassIn);
        wire::put_u32(answer, 3600);
        wire::put_u16(answer, 4);
        wire::put_u32(answer, BenchWorld::kServer.value);
        ::sendto(names_.get(), answer.data(), answer.size(), 0, from, size);
    }
}

Result<std::unique_ptr<BenchSlot>> BenchSlot::create(net::HostNetwork& host, EgressService& service,
                                                     std::string id) {
    std::unique_ptr<BenchSlot> out(new BenchSlot());
    GB_TRY_ASSIGN(out->slot_, net::Slot::create(host, {.link = net::GuestLink::veth}));
    for (int netns : {out->slot_->netns_fd(), out->slot_->guest_netns_fd()}) {
        GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter(netns));
        GB_TRY(set_up_tcp());
    }
    GatewayParts parts;
    parts.id = std::move(id);
    parts.sockets = out->slot_->take_egress_sockets();
    parts.socket = [slot = out->slot_.get()] { return slot->socket(); };
    parts.decided = [](const net::Decision&) {};
    GB_TRY_ASSIGN(out->port_, service.attach(std::move(parts)));
    out->reader_ = std::thread([self = out.get()] {
        while (!self->stopping_) {
            std::array<pollfd, 2> fds{
                {{self->slot_->decision_fd(), POLLIN, 0}, {self->slot_->flow_fd(), POLLIN, 0}}};
            if (::poll(fds.data(), fds.size(), 20) > 0) (void)self->slot_->read_decisions();
        }
    });
    return out;
}

BenchSlot::~BenchSlot() {
    stopping_ = true;
    if (reader_.joinable()) reader_.join();
    port_.reset();
}

Status BenchSlot::set_policy(const net::EgressPolicy& policy) {
    port_->set_policy(policy, nullptr);
    return slot_->set_policy(policy);
}

net::EgressPolicy BenchWorld::address_policy() {
    return policy_of({to_string(kServer), "1.1.1.0/24"});
}

net::EgressPolicy BenchWorld::name_policy() {
    return policy_of({std::string(kName), "*.example.org"});
}

Result<std::unique_ptr<BenchWorld>> BenchWorld::create(std::size_t hello_size) {
    std::unique_ptr<BenchWorld> out(new BenchWorld());
    GB_TRY_ASSIGN(NetnsScope host, NetnsScope::enter_new());
    out->host_.emplace(std::move(host));
    GB_TRY(out->make_host());
    GB_TRY(out->make_bare_way(out->plain_, "inet1", kLinkOfPlain));
    GB_TRY(out->make_bare_way(out->relayed_, "inet2", kLinkOfRelay));
    GB_TRY(out->start_relay());
    GB_TRY_ASSIGN(out->server_, BenchServer::start(out->internet_.get(), hello_size));
    GB_TRY_ASSIGN(out->network_, net::HostNetwork::create({.instance = "bench-" + random_id(16)}));
    GB_TRY_ASSIGN(out->service_, EgressService::start({.ceiling = out->network_->ceiling(),
                                                       .resolvers = {{kInternetHere, kNamePort}}}));
    GB_TRY_ASSIGN(out->address_, BenchSlot::create(*out->network_, *out->service_, "address"));
    GB_TRY_ASSIGN(out->name_, BenchSlot::create(*out->network_, *out->service_, "name"));
    GB_TRY(out->address_->set_policy(address_policy()));
    GB_TRY(out->name_->set_policy(name_policy()));
    return out;
}

Status BenchWorld::make_host() {
    GB_TRY(set_up_tcp());
    GB_TRY_ASSIGN(internet_, net::create_netns());
    GB_TRY_ASSIGN(Links host, Links::open());
    GB_TRY(host.add_veth({.name = "wan0"}, {.name = "inet0", .netns_fd = internet_.get()}));
    GB_TRY(address_and_up(host, "wan0", kHostThere, kLink));
    GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter(internet_.get()));
    GB_TRY(set_up_tcp());
    GB_TRY_ASSIGN(Links there, Links::open());
    GB_TRY(address_and_up(there, "lo", kServer, 32));
    GB_TRY(address_and_up(there, "inet0", kInternetHere, kLink));
    return default_route(host, "wan0", kInternetHere);
}

Status BenchWorld::make_bare_way(BareWay& way, std::string_view name, Ipv4 link) {
    const Ipv4 host_there{link.value + 1}, internet_here{link.value + 2};
    for (UniqueFd* netns : {&way.host, &way.router, &way.guest}) {
        GB_TRY_ASSIGN(*netns, net::create_netns());
        GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter(netns->get()));
        GB_TRY(set_up_tcp());
        if (netns != &way.guest) GB_TRY(net::set_sysctl("net/ipv4/ip_forward", "1"));
    }
    {
        GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter(way.host.get()));
        GB_TRY_ASSIGN(Links links, Links::open());
        GB_TRY(links.add_veth({.name = "wan0"}, {.name = std::string(name), .netns_fd = internet_.get()}));
        GB_TRY(links.add_veth({.name = "down0"}, {.name = "up0", .netns_fd = way.router.get()}));
        GB_TRY(address_and_up(links, "wan0", host_there, kLink));
        GB_TRY(address_and_up(links, "down0", kBareHostInside, kLink));
    }
    {
        GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter(internet_.get()));
        GB_TRY_ASSIGN(Links links, Links::open());
        GB_TRY(address_and_up(links, name, internet_here, kLink));
    }
    {
        GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter(way.router.get()));
        GB_TRY_ASSIGN(Links links, Links::open());
        GB_TRY(links.add_veth({.name = "down0"}, {.name = "eth0", .netns_fd = way.guest.get()}));
        GB_TRY(address_and_up(links, "up0", kRouterOutside, kLink));
        GB_TRY(address_and_up(links, "down0", kRouterInside, kLink));
        GB_TRY(default_route(links, "up0", kBareHostInside));
    }
    {
        GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter(way.guest.get()));
        GB_TRY_ASSIGN(Links links, Links::open());
        GB_TRY(address_and_up(links, "eth0", kBareGuest, kLink));
        GB_TRY(default_route(links, "eth0", kRouterInside));
    }
    GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter(way.host.get()));
    GB_TRY_ASSIGN(Links links, Links::open());
    GB_TRY(default_route(links, "wan0", internet_here));
    GB_TRY(run_checked({"ip", "route", "add", "10.11.0.0/30", "via", to_string(kRouterOutside)}));
    return net::apply_rules(
        "table ip bare { chain source { type nat hook postrouting priority srcnat; oifname \"wan0\" "
        "masquerade; }; }");
}

Status BenchWorld::start_relay() {
    GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter(relayed_.router.get()));
    GB_TRY_ASSIGN(relay_, BenchRelay::start());
    return net::apply_rules(
        fmt::format("table ip bare {{ chain dispatch {{ type nat hook prerouting priority dstnat; "
                    "iifname \"down0\" tcp dport {} redirect to :{}; }}; }}",
                    kPort, BenchRelay::kPort));
}

}  // namespace gb::egress
