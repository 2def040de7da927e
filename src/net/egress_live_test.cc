// SPDX-License-Identifier: Apache-2.0
// What a guest can reach, tried for real: contract 7.6, N1 N6 N10 N12 N13 N18. The guest is a namespace
// behind the same interface name, so the rules are the very ones that a virtual machine meets.
#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_compat.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "net/address_block.h"
#include "net/net_world.h"
#include "net/netlink.h"
#include "net/slot_rules.h"

namespace gb::net {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class EgressTest : public HostTest {
  protected:
    void SetUp() override {
        HostTest::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        slot_ = make_slot();
    }

    std::unique_ptr<Slot> make_slot(SlotOptions options = {}) {
        options.link = GuestLink::veth;
        auto slot = Slot::create(*host_, options);
        EXPECT_TRUE(slot) << slot.error().message;
        return slot ? std::move(*slot) : nullptr;
    }

    void set(const NetworkRequest& request) {
        auto policy = parse_policy(request);
        ASSERT_TRUE(policy) << policy.error().message;
        auto status = slot_->set_policy(*policy);
        ASSERT_TRUE(status) << status.error().message;
    }

    int tcp(std::string_view address, int port, milliseconds patience = kPatience) {
        return in_guest(*slot_, [&] { return tcp_probe(address, port, patience); });
    }
    int udp(std::string_view address, int port) {
        return in_guest(*slot_, [&] { return udp_probe(address, port); });
    }
    int icmp(std::string_view address) {
        return in_guest(*slot_, [&] { return icmp_probe(address); });
    }
    std::vector<std::string> log() { return brief(decisions_of(*slot_)); }

    std::unique_ptr<Slot> slot_;
};

TEST_F(EgressTest, ProbesReachEverythingWhenThereAreNoRules) {
    // Without this, a probe that fails would prove nothing.
    for (int netns : {slot_->netns_fd()})
        in_netns(netns, [&] {
            NetWorld::command(
                {"nft",
                 "flush ruleset; table inet open { chain s { type nat hook postrouting priority "
                 "srcnat; oifname up0 masquerade; }; }"});
        });
    NetWorld::command(
        {"nft",
         "flush ruleset; table inet open { chain s { type nat hook postrouting priority srcnat; "
         "oifname wan0 masquerade; }; }"});
    for (const char* address : {"203.0.113.10", "8.8.8.8", "10.200.0.1", "100.64.0.9", "169.254.169.254",
                                "172.16.5.5", "192.168.7.7", "240.0.0.1"}) {
        EXPECT_EQ(tcp(address, 443), 0) << address;
        EXPECT_EQ(udp(address, 53), 0) << address;
        EXPECT_EQ(icmp(address), 0) << address;
    }
}

TEST_F(EgressTest, SlotWithoutPolicyIsClosedAndSaysSo) {
    EXPECT_EQ(tcp("203.0.113.10", 80), ECONNREFUSED);
    EXPECT_EQ(tcp("8.8.8.8", 443), ECONNREFUSED);
    EXPECT_EQ(tcp("8.8.8.8", 853), ECONNREFUSED);
    EXPECT_EQ(udp("8.8.8.8", 123), EHOSTUNREACH);
    EXPECT_EQ(udp("8.8.8.8", 443), EHOSTUNREACH);
    EXPECT_EQ(icmp("8.8.8.8"), EHOSTUNREACH);
    EXPECT_THAT(log(),
                ElementsAre("deny tcp 203.0.113.10 80 deny 0.0.0.0/0", "deny tcp 8.8.8.8 443 deny 0.0.0.0/0",
                            "deny tcp 8.8.8.8 853 deny 0.0.0.0/0", "deny udp 8.8.8.8 123 deny 0.0.0.0/0",
                            "deny udp 8.8.8.8 443 deny 0.0.0.0/0", "deny icmp 8.8.8.8 0 deny 0.0.0.0/0"));
}

TEST_F(EgressTest, OpenSlotReachesPublicAddressesOneLineAConnection) {
    set({});
    EXPECT_EQ(tcp("203.0.113.10", 80), 0);
    EXPECT_EQ(tcp("8.8.8.8", 443), 0);
    EXPECT_EQ(udp("8.8.8.8", 123), 0);
    EXPECT_EQ(icmp("1.1.1.1"), 0);
    EXPECT_THAT(log(), ElementsAre("allow tcp 203.0.113.10 80 default", "allow tcp 8.8.8.8 443 default",
                                   "allow udp 8.8.8.8 123 default", "allow icmp 1.1.1.1 0 default"));
}

TEST_F(EgressTest, N12_ClosedRangesStayClosedInEveryMode) {
    const char* const kAddresses[] = {"10.0.0.1",        "10.200.0.1", "100.64.0.9",
                                      "169.254.169.254", "172.16.5.5", "172.31.255.254",
                                      "192.168.7.7",     "240.0.0.1",  "255.255.255.254"};
    const NetworkRequest kModes[] = {
        {},
        {.allow_out = {"0.0.0.0/0"}},
        {.allow_out = {"0.0.0.0/0", "169.254.169.254"}, .deny_out = {"0.0.0.0/0"}}};
    for (const NetworkRequest& mode : kModes) {
        set(mode);
        std::vector<std::string> expected;
        for (const char* address : kAddresses) {
            EXPECT_EQ(tcp(address, 80), ECONNREFUSED) << address;
            EXPECT_EQ(udp(address, 123), EHOSTUNREACH) << address;
            EXPECT_EQ(icmp(address), EHOSTUNREACH) << address;
            expected.push_back(fmt::format("deny tcp {} 80 private", address));
            expected.push_back(fmt::format("deny udp {} 123 private", address));
            expected.push_back(fmt::format("deny icmp {} 0 private", address));
        }
        EXPECT_EQ(log(), expected);
    }
}

TEST_F(EgressTest, UnroutableAddressesAreDroppedAndLogged) {
    set({});
    in_guest(*slot_, [] {
        for (const char* address : {"224.0.0.251", "255.255.255.255"})
            send_raw("10.11.0.2", address, IPPROTO_UDP, std::string("\x03\xe8\x14\xe9\x00\x08\x00\x00", 8));
    });
    // A kernel keeps 127.0.0.1 to itself; slot_live_test sends it as a frame.
    EXPECT_THAT(log(),
                ElementsAre("deny udp 224.0.0.251 5353 private", "deny udp 255.255.255.255 5353 private"));
}

TEST_F(EgressTest, N12_HostIsClosed) {
    set({.allow_out = {"0.0.0.0/0"}});
    SlotAddresses legs = slot_addresses(host_->block(), slot_->number());
    UniqueFd on_host(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in any{.sin_family = AF_INET, .sin_port = htons(8080), .sin_addr = {}, .sin_zero = {}};
    ASSERT_EQ(::bind(on_host.get(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
    ASSERT_EQ(::listen(on_host.get(), 5), 0);
    ASSERT_EQ(tcp_probe("203.0.113.1", 8080), 0) << "the host's service answers the host";

    EXPECT_EQ(tcp(to_string(legs.host), 8080), ECONNREFUSED);  // its leg to this slot
    EXPECT_EQ(tcp("203.0.113.1", 8080), ECONNREFUSED);         // its leg to the internet
    EXPECT_EQ(tcp(to_string(legs.slot), 8080, milliseconds(50)), ETIMEDOUT);
    EXPECT_EQ(tcp("10.11.0.1", 8080, milliseconds(50)), ETIMEDOUT);
    EXPECT_EQ(udp("10.11.0.1", 54), ETIMEDOUT);
    EXPECT_EQ(icmp("10.11.0.1"), ETIMEDOUT);
    EXPECT_THAT(log(), ElementsAre(fmt::format("deny tcp {} 8080 private", to_string(legs.host)),
                                   "deny tcp 203.0.113.1 8080 closed 203.0.113.1",
                                   fmt::format("deny tcp {} 8080 host-closed", to_string(legs.slot)),
                                   "deny tcp 10.11.0.1 8080 host-closed", "deny udp 10.11.0.1 54 host-closed",
                                   "deny icmp 10.11.0.1 0 host-closed"));
    EXPECT_THAT(decisions_of(*host_), IsEmpty());
}

TEST_F(EgressTest, HostAddressThatCameLaterIsClosedByTheHost) {
    set({});
    NetWorld::command({"ip", "addr", "add", "198.51.100.9/32", "dev", "wan0"});
    EXPECT_EQ(tcp("198.51.100.9", 22, milliseconds(50)), ETIMEDOUT);
    auto decisions = decisions_of(*host_);
    ASSERT_EQ(decisions.size(), 1U);
    EXPECT_EQ(decisions[0].slot, slot_->number());
    EXPECT_EQ(brief(decisions[0].decision), "deny tcp 198.51.100.9 22 host-closed");
}

TEST_F(EgressTest, SiblingIsClosedEvenWithoutTheSlotsRules) {
    set({.allow_out = {"0.0.0.0/0"}});
    auto sibling = make_slot();
    ASSERT_TRUE(sibling->set_policy(open_policy()));
    std::string address = to_string(slot_addresses(host_->block(), sibling->number()).slot);
    EXPECT_EQ(tcp(address, 80), ECONNREFUSED);
    EXPECT_THAT(log(), ElementsAre(fmt::format("deny tcp {} 80 private", address)));

    in_netns(slot_->netns_fd(), [] {
        NetWorld::command(
            {"nft", "flush chain inet glovebox forward; chain inet glovebox forward { policy accept; }"});
    });
    EXPECT_EQ(tcp(address, 80, milliseconds(50)), ETIMEDOUT);
    EXPECT_EQ(tcp("192.168.7.7", 80, milliseconds(50)), ETIMEDOUT);
    auto decisions = decisions_of(*host_);
    ASSERT_EQ(decisions.size(), 2U);
    EXPECT_EQ(brief(decisions[0].decision), fmt::format("deny tcp {} 80 private", address));
    EXPECT_EQ(brief(decisions[1].decision), "deny tcp 192.168.7.7 80 private");
}

TEST_F(EgressTest, N10_Ipv6DoesNotExist) {
    set({});
    in_guest(*slot_, [] {
        NetWorld::command({"ip", "-6", "addr", "add", "fd00::2/64", "dev", "eth0", "nodad"});
        NetWorld::command(
            {"ip", "-6", "neigh", "add", "fd00::1", "lladdr", "02:67:62:00:00:01", "dev", "eth0"});
        NetWorld::command({"ip", "-6", "route", "add", "default", "via", "fd00::1", "dev", "eth0"});
        UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0));
        sockaddr_in6 to{};
        to.sin6_family = AF_INET6;
        to.sin6_port = htons(443);
        ::inet_pton(AF_INET6, "2001:db8::1", &to.sin6_addr);
        ::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to);
        UniqueFd ping(::socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6));
        to.sin6_port = 0;
        const char request[8] = {static_cast<char>(128)};
        ::sendto(ping.get(), request, sizeof request, 0, reinterpret_cast<sockaddr*>(&to), sizeof to);
    });
    EXPECT_THAT(log(), ElementsAre("deny tcp 2001:db8::1 443 ipv6", "deny icmpv6 2001:db8::1 0 ipv6"));
}

TEST_F(EgressTest, N10_MappedAddressIsTheIpv4ItStandsFor) {
    set({.deny_out = {"::ffff:8.8.8.0/120"}});
    EXPECT_EQ(tcp("8.8.8.8", 443), ECONNREFUSED);
    EXPECT_EQ(tcp("8.8.9.8", 443), 0);
    EXPECT_THAT(log(), ElementsAre("deny tcp 8.8.8.8 443 deny 8.8.8.0/24", "allow tcp 8.8.9.8 443 default"));
}

TEST_F(EgressTest, N13_SpoofedAndRawPackets) {
    set({});
    in_guest(*slot_, [] {
        send_raw("10.11.0.3", "8.8.8.8", IPPROTO_UDP, std::string("\x03\xe8\x00\x35\x00\x08\x00\x00", 8));
        send_raw("203.0.113.77", "8.8.8.8", IPPROTO_TCP, tcp_header(1000, 443, TH_SYN));
        send_raw("10.11.0.1", "10.11.0.1", IPPROTO_ICMP, std::string("\x08\x00\xf7\xff\x00\x00\x00\x00", 8));
        send_raw("10.11.0.2", "8.8.8.8", 47, std::string(8, '\0'));    // GRE, allowed as everything is
        send_raw("10.11.0.2", "8.8.8.8", 132, std::string(12, '\1'));  // SCTP, but not really
        send_raw("10.11.0.2", "10.9.9.9", 47, std::string(8, '\0'));   // GRE
    });
    auto decisions = decisions_of(*slot_);
    EXPECT_THAT(brief(decisions),
                ElementsAre("deny udp 8.8.8.8 53 spoofed-source", "deny tcp 8.8.8.8 443 spoofed-source",
                            "deny icmp 10.11.0.1 0 spoofed-source", "allow 47 8.8.8.8 0 default",
                            "deny sctp 8.8.8.8 257 invalid", "deny 47 10.9.9.9 0 private"));
    EXPECT_EQ(decisions[1].source, "203.0.113.77");
}

TEST_F(EgressTest, RulesAgreeWithTheirPureTwin) {
    const NetworkRequest kPolicies[] = {
        {},
        {.allow_internet_access = false},
        {.allow_internet_access = true, .deny_out = {"8.8.8.0/24"}},
        {.allow_out = {"8.8.8.8"}, .deny_out = {"0.0.0.0/0"}},
        {.allow_internet_access = false, .allow_out = {"8.8.0.0/16", "203.0.113.10", "10.0.0.0/8"}},
        {.allow_out = {"8.8.8.8"}},
        {.allow_out = {"8.8.8.128/25", "8.8.8.0/25"}, .deny_out = {"8.0.0.0/8", "1.1.1.1"}},
        {.deny_out = {"128.0.0.0/1"}},
        {.deny_out = {"0.0.0.0/1", "1.1.1.1/32"}},
        {.allow_out = {"255.0.0.0/8", "0.0.0.0/1"}, .deny_out = {"0.0.0.0/0"}},
        {.allow_out = {"8.8.8.7", "8.8.8.8", "8.8.8.9"}, .deny_out = {"8.8.8.10", "8.8.8.11", "::/0"}},
    };
    const char* const kAddresses[] = {"1.1.1.1",    "1.1.1.2",     "8.8.7.255", "8.8.8.0",      "8.8.8.7",
                                      "8.8.8.8",    "8.8.8.9",     "8.8.8.10",  "8.8.8.11",     "8.8.8.12",
                                      "8.8.8.255",  "8.8.9.0",     "8.255.0.1", "203.0.113.10", "10.0.0.1",
                                      "198.18.0.1", "203.0.113.1", "240.0.0.1"};
    for (const NetworkRequest& request : kPolicies) {
        set(request);
        std::vector<std::string> expected;
        for (const char* address : kAddresses) {
            Ruling ruling = judge(slot_->policy(), host_->ceiling(), *parse_ipv4(address));
            EXPECT_EQ(tcp(address, 443), ruling.verdict == Verdict::allow ? 0 : ECONNREFUSED)
                << address << ruling.rule;
            expected.push_back(
                fmt::format("{} tcp {} 443 {}", to_string(ruling.verdict), address, ruling.rule));
        }
        EXPECT_EQ(log(), expected);
    }
}

TEST_F(EgressTest, LongListsAreReplacedWhole) {
    NetworkRequest request{.allow_internet_access = false};
    for (int i = 0; i < 1000; ++i) request.allow_out.push_back(fmt::format("8.{}.{}.8", i / 250, i % 250));
    set(request);
    EXPECT_EQ(tcp("8.0.0.8", 443), 0);
    EXPECT_EQ(tcp("8.3.249.8", 443), 0);
    EXPECT_EQ(tcp("8.3.249.9", 443), ECONNREFUSED);
    set({.allow_internet_access = false});
    EXPECT_EQ(tcp("8.3.249.8", 443), ECONNREFUSED);
}

TEST_F(EgressTest, N18_UpdateCutsWhatItDenies) {
    set({});
    UniqueFd kept = in_guest(*slot_, [] { return tcp_connect("1.1.1.1", 443); });
    UniqueFd cut = in_guest(*slot_, [] { return tcp_connect("8.8.8.8", 443); });
    ASSERT_TRUE(kept && cut);
    ASSERT_EQ(echo(kept.get(), "one"), 0);
    ASSERT_EQ(echo(cut.get(), "one"), 0);
    log();
    set({.deny_out = {"8.8.8.8"}});
    EXPECT_EQ(echo(kept.get(), "two"), 0);
    EXPECT_EQ(echo(cut.get(), "two"), ECONNRESET);
    EXPECT_THAT(log(), ElementsAre("deny tcp 8.8.8.8 443 deny 8.8.8.8"));
}

TEST_F(EgressTest, N18_WhoOnlyListensHearsOfACutAtOnce) {
    set({});
    UniqueFd kept = in_guest(*slot_, [] { return tcp_connect("1.1.1.1", 443); });
    std::vector<UniqueFd> cut;
    for (int i = 0; i < 20; ++i) {
        cut.push_back(in_guest(*slot_, [] { return tcp_connect("8.8.8.8", 443); }));
        ASSERT_EQ(echo(cut.back().get(), "one"), 0);
    }
    {  // one that is over says nothing more
        UniqueFd over = in_guest(*slot_, [] { return tcp_connect("8.8.8.8", 22); });
        ASSERT_EQ(echo(over.get(), "one"), 0);
    }
    log();
    set({.deny_out = {"8.8.8.8"}});
    for (UniqueFd& fd : cut) {
        pollfd waiting{fd.get(), POLLIN, 0};
        ASSERT_EQ(::poll(&waiting, 1, 2'000), 1) << "it would have waited for ever";
        char data[16];
        EXPECT_EQ(::recv(fd.get(), data, sizeof data, 0), -1);
        EXPECT_EQ(errno, ECONNRESET);
    }
    EXPECT_EQ(echo(kept.get(), "two"), 0);
    EXPECT_THAT(log(), testing::AllOf(testing::SizeIs(20), testing::Each("deny tcp 8.8.8.8 443 deny 8.8.8.8")));
    // What is open again is open.
    set({});
    UniqueFd again = in_guest(*slot_, [] { return tcp_connect("8.8.8.8", 443); });
    EXPECT_EQ(echo(again.get(), "three"), 0);
}

TEST_F(EgressTest, N18_UpdateCutsWhatComesInToo) {
    set({});
    UniqueFd udp_socket = in_guest(*slot_, [] {
        UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(9999), .sin_addr = {}, .sin_zero = {}};
        ::inet_pton(AF_INET, "8.8.8.8", &to.sin_addr);
        ::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to);
        return fd;
    });
    UniqueFd server = in_netns(world_->internet(), [] {
        UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_in at{.sin_family = AF_INET, .sin_port = htons(9999), .sin_addr = {}, .sin_zero = {}};
        ::inet_pton(AF_INET, "8.8.8.8", &at.sin_addr);
        EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
        return fd;
    });
    ASSERT_EQ(::send(udp_socket.get(), "hello", 5, 0), 5);
    sockaddr_in guest{};
    socklen_t size = sizeof guest;
    char data[16];
    ASSERT_EQ(::recvfrom(server.get(), data, sizeof data, 0, reinterpret_cast<sockaddr*>(&guest), &size), 5);
    auto arrives = [&] {
        ::sendto(server.get(), "data", 4, 0, reinterpret_cast<sockaddr*>(&guest), size);
        pollfd p{udp_socket.get(), POLLIN, 0};
        if (::poll(&p, 1, 150) <= 0) return false;
        return ::recv(udp_socket.get(), data, sizeof data, 0) == 4;
    };
    EXPECT_TRUE(arrives());
    set({.allow_internet_access = false});
    EXPECT_FALSE(arrives());
    set({});
    EXPECT_TRUE(arrives());
}

TEST_F(EgressTest, NobodyOutsideReachesTheGuest) {
    set({});
    UniqueFd service = in_guest(*slot_, [] {
        UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in any{.sin_family = AF_INET, .sin_port = htons(8000), .sin_addr = {}, .sin_zero = {}};
        EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
        EXPECT_EQ(::listen(fd.get(), 5), 0);
        return fd;
    });
    std::string leg = to_string(slot_addresses(host_->block(), slot_->number()).slot);
    NetWorld::command({"ip", "route", "add", "10.11.0.2/32", "via", leg});
    EXPECT_EQ(tcp_probe("10.11.0.2", 8000, milliseconds(100)), ETIMEDOUT) << "from the host by a route";
    EXPECT_EQ(tcp_probe(leg, 8000, milliseconds(100)), ETIMEDOUT);
    in_netns(world_->internet(), [&] {
        NetWorld::command({"ip", "route", "del", "local", "10.0.0.0/8", "dev", "lo"});
        NetWorld::command({"ip", "route", "add", to_string(host_->block()), "via", "203.0.113.1"});
        EXPECT_EQ(tcp_probe(leg, 8000, milliseconds(100)), ETIMEDOUT);
    });
}

TEST_F(EgressTest, HostOpensSocketsIntoAClosedGuest) {
    UniqueFd service = in_guest(*slot_, [] {
        UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in any{.sin_family = AF_INET, .sin_port = htons(49983), .sin_addr = {}, .sin_zero = {}};
        EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
        EXPECT_EQ(::listen(fd.get(), 5), 0);
        return fd;
    });
    auto socket = slot_->socket();
    ASSERT_TRUE(socket) << socket.error().message;
    sockaddr_in to{.sin_family = AF_INET,
                   .sin_port = htons(49983),
                   .sin_addr = {htonl(kGuestAddress.value)},
                   .sin_zero = {}};
    ASSERT_TRUE(::connect(socket->get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 ||
                errno == EINPROGRESS);
    UniqueFd accepted(::accept(service.get(), nullptr, nullptr));
    ASSERT_TRUE(accepted);
    ASSERT_EQ(::send(accepted.get(), "hi", 2, 0), 2);
    pollfd p{socket->get(), POLLIN, 0};
    ASSERT_EQ(::poll(&p, 1, 1000), 1);
    char data[8];
    EXPECT_EQ(::recv(socket->get(), data, sizeof data, 0), 2);
    EXPECT_THAT(log(), IsEmpty());
}

TEST_F(EgressTest, FloodIsLimitedAndCounted) {
    in_guest(*slot_, [] { send_udp("8.8.8.8", 123, 5000); });
    std::size_t lines = log().size();
    auto suppressed = slot_->suppressed();
    ASSERT_TRUE(suppressed) << suppressed.error().message;
    EXPECT_GE(lines, 400U);
    EXPECT_LE(lines, 1500U);
    EXPECT_EQ(lines + *suppressed, 5000U);
}

TEST_F(EgressTest, ReaderThatDoesNotReadLosesAndCounts) {
    in_netns(slot_->netns_fd(), [] {
        // As if the rate were no limit, to overrun the socket.
        NetWorld::command(
            {"nft", "add rule inet glovebox raw iifname tap0 log prefix \"deny flood\" group 1"});
    });
    in_guest(*slot_, [] { send_udp("8.8.8.8", 123, 20000); });
    std::uint64_t floods = 0;
    for (const Decision& decision : decisions_of(*slot_)) floods += decision.rule == "flood" ? 1 : 0;
    EXPECT_LT(floods, 20000U);
    EXPECT_GT(*slot_->suppressed(), 20000U - floods);
}

TEST_F(EgressTest, ConnectionsAreLimited) {
    slot_ = make_slot({.max_connections = 20});
    set({});
    std::vector<UniqueFd> open;
    int refused = 0;
    for (int i = 0; i < 30; ++i) {
        UniqueFd fd = in_guest(*slot_, [] { return tcp_connect("8.8.8.8", 443); });
        if (!fd) ++refused;
        open.push_back(std::move(fd));
    }
    EXPECT_EQ(refused, 10);
    auto lines = log();
    EXPECT_EQ(std::ranges::count(lines, "deny tcp 8.8.8.8 443 too-many-connections"), 10);
    EXPECT_EQ(std::ranges::count(lines, "allow tcp 8.8.8.8 443 default"), 20);
}

TEST_F(EgressTest, EndsSayWhatConnectionsCarried) {
    set({});
    in_guest(*slot_, [] {
        UniqueFd fd = tcp_connect("8.8.8.8", 443);
        for (int i = 0; i < 20; ++i) ASSERT_EQ(echo(fd.get(), std::string(50, 'x')), 0);
    });
    log();
    // The kernel forgets a connection up to a minute after its end; here it is made to at once.
    in_netns(slot_->netns_fd(), [] {
        auto socket = NetlinkSocket::open(NETLINK_NETFILTER);
        ASSERT_TRUE(socket);
        NetlinkMessage all(NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE, NLM_F_ACK, nfgenmsg{.nfgen_family = AF_INET});
        ASSERT_TRUE(socket->request(all, "forget connections"));
    });
    std::vector<Decision> ends = ends_of(*slot_, 1, std::chrono::seconds(5));
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_EQ(brief(ends[0]), "end tcp 8.8.8.8 443 ");
    EXPECT_GT(ends[0].sent, 1000U);
    EXPECT_LT(ends[0].sent, 4000U) << "with headers";
    EXPECT_GT(ends[0].received, 1000U);

    UniqueFd open = in_guest(*slot_, [] { return tcp_connect("1.1.1.1", 22); });
    auto flows = slot_->open_flows();
    ASSERT_TRUE(flows) << flows.error().message;
    ASSERT_EQ(flows->size(), 1U);
    EXPECT_EQ(brief(flows->front()), "end tcp 1.1.1.1 22 ");
}

// What arrives at a socket that redirected traffic comes to: its text, and where the guest wanted it to go.
struct Arrival {
    std::string text, destination;
};

Arrival next_connection(int listener) {
    pollfd p{listener, POLLIN, 0};
    if (::poll(&p, 1, 2000) != 1) return {};
    UniqueFd fd(::accept(listener, nullptr, nullptr));
    sockaddr_in to{};
    socklen_t size = sizeof to;
    ::getsockopt(fd.get(), SOL_IP, SO_ORIGINAL_DST, &to, &size);
    return {"", fmt::format("{}:{}", to_string(Ipv4{ntohl(to.sin_addr.s_addr)}), ntohs(to.sin_port))};
}

TEST_F(EgressTest, N1_QuestionsForNamesComeToUsWhateverTheServer) {
    EgressSockets sockets = slot_->take_egress_sockets();
    for (bool open : {false, true}) {
        if (open) set({});
        for (const char* server :
             {"8.8.8.8", "203.0.113.10", "10.0.0.53", "192.168.1.1", "169.254.169.253"}) {
            UniqueFd fd(in_guest(*slot_, [&] {
                UniqueFd out(::socket(AF_INET, SOCK_DGRAM, 0));
                sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(53), .sin_addr = {}, .sin_zero = {}};
                ::inet_pton(AF_INET, server, &to.sin_addr);
                EXPECT_EQ(::connect(out.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
                EXPECT_EQ(::send(out.get(), "name?", 5, 0), 5);
                return out;
            }));
            pollfd p{sockets.dns_udp.get(), POLLIN, 0};
            ASSERT_EQ(::poll(&p, 1, 2000), 1) << server;
            char text[16];
            sockaddr_in from{};
            socklen_t size = sizeof from;
            ASSERT_EQ(::recvfrom(sockets.dns_udp.get(), text, sizeof text, 0,
                                 reinterpret_cast<sockaddr*>(&from), &size),
                      5);
            ASSERT_EQ(
                ::sendto(sockets.dns_udp.get(), "answer", 6, 0, reinterpret_cast<sockaddr*>(&from), size), 6);
            p = {fd.get(), POLLIN, 0};
            ASSERT_EQ(::poll(&p, 1, 2000), 1) << "the answer comes from the server that was asked";
            EXPECT_EQ(tcp(server, 53), 0);
            EXPECT_EQ(next_connection(sockets.dns_tcp.get()).destination, fmt::format("{}:53", server));
        }
    }
    sockets = {};
    EXPECT_NE(udp("8.8.8.8", 53), 0) << "nobody serves it: nothing leaves";
    EXPECT_NE(tcp("8.8.8.8", 53), 0);
    EXPECT_THAT(log(), IsEmpty());
}

TEST_F(EgressTest, OnlyRedirectedConnectionsReachTheProxy) {
    EgressSockets sockets = slot_->take_egress_sockets();
    set({.allow_out = {"ok.com", "1.1.1.1"}, .deny_out = {"0.0.0.0/0"}});
    EXPECT_EQ(tcp("10.11.0.1", kProxyPort, milliseconds(50)), ETIMEDOUT);
    EXPECT_EQ(tcp("10.11.0.1", kDnsPort, milliseconds(50)), ETIMEDOUT);
    EXPECT_EQ(tcp("8.8.8.8", 443), 0);
    EXPECT_EQ(next_connection(sockets.proxy.get()).destination, "8.8.8.8:443");
    EXPECT_EQ(tcp("8.8.8.8", 80), 0);
    EXPECT_EQ(next_connection(sockets.proxy.get()).destination, "8.8.8.8:80");
    EXPECT_EQ(tcp("8.8.8.8", 22), ECONNREFUSED);
    EXPECT_EQ(tcp("10.0.0.1", 443), ECONNREFUSED);
    EXPECT_EQ(tcp("1.1.1.1", 443), 0);
    EXPECT_EQ(udp("8.8.8.8", 443), EHOSTUNREACH) << "N6";
    EXPECT_EQ(udp("1.1.1.1", 443), EHOSTUNREACH) << "N6";
    EXPECT_THAT(log(), ElementsAre(fmt::format("deny tcp 10.11.0.1 {} host-closed", kProxyPort),
                                   "deny tcp 10.11.0.1 53 host-closed", "deny tcp 8.8.8.8 22 deny 0.0.0.0/0",
                                   "deny tcp 10.0.0.1 443 private", "allow tcp 1.1.1.1 443 allow 1.1.1.1",
                                   "deny udp 8.8.8.8 443 udp-closed", "deny udp 1.1.1.1 443 udp-closed"));
}

TEST_F(EgressTest, ConnectionsThatMustBeSeenByNameAreCut) {
    EgressSockets sockets = slot_->take_egress_sockets();
    set({});
    UniqueFd web = in_guest(*slot_, [] { return tcp_connect("8.8.8.8", 443); });
    UniqueFd other = in_guest(*slot_, [] { return tcp_connect("8.8.8.8", 22); });
    ASSERT_EQ(echo(web.get(), "a"), 0);
    log();
    set({.rules = {{"api.example.com", {{"A", "b"}}}}});
    EXPECT_EQ(echo(web.get(), "b"), ECONNRESET);
    EXPECT_EQ(echo(other.get(), "b"), 0) << "no rule is about its port";
    EXPECT_EQ(udp("8.8.8.8", 443), EHOSTUNREACH) << "QUIC would pass the rules by";
    EXPECT_EQ(udp("8.8.8.8", 123), 0);
    EXPECT_THAT(log(), ElementsAre("deny tcp 8.8.8.8 443 by-name", "deny udp 8.8.8.8 443 udp-closed",
                                   "allow udp 8.8.8.8 123 default"));
}

TEST_F(EgressTest, WithAProxyOfTheClientsNothingPassesItBy) {
    EgressSockets sockets = slot_->take_egress_sockets();
    set({});
    UniqueFd before = in_guest(*slot_, [] { return tcp_connect("8.8.8.8", 22); });
    log();
    set({.egress_proxy = ProxyRequest{"proxy.example:1080", "", ""}});
    EXPECT_EQ(echo(before.get(), "b"), ECONNRESET);
    EXPECT_EQ(tcp("8.8.8.8", 22), 0);
    EXPECT_EQ(next_connection(sockets.proxy.get()).destination, "8.8.8.8:22");
    EXPECT_EQ(udp("8.8.8.8", 123), EHOSTUNREACH);
    EXPECT_EQ(icmp("8.8.8.8"), EHOSTUNREACH);
    EXPECT_EQ(tcp("192.168.1.1", 22), ECONNREFUSED);
    EXPECT_THAT(log(), ElementsAre("deny tcp 8.8.8.8 22 proxy-only", "deny udp 8.8.8.8 123 proxy-only",
                                   "deny icmp 8.8.8.8 0 proxy-only", "deny tcp 192.168.1.1 22 private"));
}

TEST_F(EgressTest, ProxysOwnConnectionsKeepToTheCeiling) {
    auto connect_from_slot = [&](const char* address) {
        auto socket = slot_->socket();
        EXPECT_TRUE(socket);
        ::fcntl(socket->get(), F_SETFL, 0);
        sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(443), .sin_addr = {}, .sin_zero = {}};
        ::inet_pton(AF_INET, address, &to.sin_addr);
        const timeval limit{.tv_sec = 0, .tv_usec = 300'000};
        ::setsockopt(socket->get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        return ::connect(socket->get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
    };
    EXPECT_TRUE(connect_from_slot("8.8.8.8")) << "the slot's policy is the proxy's to judge";
    EXPECT_FALSE(connect_from_slot("10.0.0.1"));
    EXPECT_FALSE(connect_from_slot("169.254.169.254"));
    EXPECT_FALSE(connect_from_slot("203.0.113.1")) << "the host";
}

TEST_F(EgressTest, S15_ConnectionFromBeforeARestoreIsReset) {
    set({});
    in_guest(*slot_,
             [] { send_raw("10.11.0.2", "8.8.8.8", IPPROTO_TCP, tcp_header(40000, 443, TH_ACK | TH_PUSH)); });
    EXPECT_THAT(log(), ElementsAre("deny tcp 8.8.8.8 443 stale-connection"));
}

}  // namespace
}  // namespace gb::net
