// SPDX-License-Identifier: Apache-2.0
// A slot as a virtual machine sees it: frames at the descriptor of the tap. And what it costs.
#include <algorithm>
#include <cstring>
#include <thread>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/eventually.h"
#include "base/subprocess.h"
#include "net/net_world.h"
#include "net/slot.h"
#include "net/slot_rules.h"

namespace gb::net {
namespace {

using namespace std::string_literals;
using std::chrono::milliseconds;
using testing::ElementsAre;

constexpr std::size_t kVirtioHeader = 10;  // struct virtio_net_hdr, until TUNSETVNETHDRSZ says otherwise

std::string view(const Mac& mac) {
    return {reinterpret_cast<const char*>(mac.data()), mac.size()};
}

std::string frame(std::uint16_t type, std::string_view payload) {
    std::string out = view(kTapMac) + view(kGuestMac);
    out += {static_cast<char>(type >> 8), static_cast<char>(type)};
    return out + std::string(payload);
}

std::string packet(std::string_view destination, std::uint8_t protocol, std::string_view payload) {
    std::string p(20, '\0');
    p[0] = 0x45;
    p[3] = static_cast<char>(20 + payload.size());
    p[8] = 64;
    p[9] = static_cast<char>(protocol);
    in_addr to{};
    ::inet_pton(AF_INET, std::string(destination).c_str(), &to);
    p.replace(12, 4, "\x0a\x0b\x00\x02"s);
    p.replace(16, 4, reinterpret_cast<const char*>(&to), 4);
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < 20; i += 2)
        sum += static_cast<std::uint32_t>(static_cast<std::uint8_t>(p[i]) << 8 |
                                          static_cast<std::uint8_t>(p[i + 1]));
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    p[10] = static_cast<char>(~sum >> 8);
    p[11] = static_cast<char>(~sum);
    return p + std::string(payload);
}

class SlotTest : public HostTest {
  protected:
    std::unique_ptr<Slot> make() {
        auto slot = Slot::create(*host_);
        EXPECT_TRUE(slot) << slot.error().message;
        return slot ? std::move(*slot) : nullptr;
    }
    static void send(int tap, std::string_view bytes, int transport = 0) {
        std::string out = std::string(kVirtioHeader, '\0') + std::string(bytes);
        if (transport == IPPROTO_TCP) {  // as guests do: the checksum is left to the device
            out[0] = 1;                  // VIRTIO_NET_HDR_F_NEEDS_CSUM
            out[6] = 14 + 20;            // where it starts
            out[8] = 16;                 // and where it goes
        }
        ASSERT_EQ(::write(tap, out.data(), out.size()), static_cast<ssize_t>(out.size()))
            << ::strerror(errno);
    }
    // The next frame of this type, without its headers; empty when none comes.
    static std::string receive(int tap, std::uint16_t type) {
        pollfd p{tap, POLLIN, 0};
        char data[4096];
        while (::poll(&p, 1, 500) > 0) {
            ssize_t n = ::read(tap, data, sizeof data);
            if (n < static_cast<ssize_t>(kVirtioHeader + 14)) continue;
            std::string_view got(data + kVirtioHeader, static_cast<std::size_t>(n) - kVirtioHeader);
            if (got[12] == static_cast<char>(type >> 8) && got[13] == static_cast<char>(type))
                return std::string(got.substr(14));
        }
        return "";
    }
};

TEST_F(SlotTest, TapIsWhatQemuExpects) {
    auto slot = make();
    UniqueFd tap = slot->take_tap();
    ASSERT_TRUE(tap);
    EXPECT_FALSE(slot->take_tap()) << "it has one owner";
    ifreq request{};
    ASSERT_EQ(::ioctl(tap.get(), TUNGETIFF, &request), 0);
    EXPECT_STREQ(request.ifr_name, "tap0");
    EXPECT_EQ(request.ifr_flags & (IFF_TAP | IFF_NO_PI | IFF_VNET_HDR), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR);
    EXPECT_EQ(request.ifr_flags & IFF_PERSIST, 0);
}

TEST_F(SlotTest, QemuTakesTheTapWithoutAnyRights) {
    if (::access("/usr/bin/qemu-system-x86_64", X_OK) != 0) GTEST_SKIP() << "QEMU is not installed";
    auto slot = make();
    UniqueFd tap = slot->take_tap();
    ASSERT_EQ(::fcntl(tap.get(), F_SETFD, 0), 0);
    RunOptions options;
    options.stdin_data = "info network\nquit\n";
    auto out = run({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all",
                    "qemu-system-x86_64", "-S", "-nodefaults", "-nographic", "-M", "microvm,accel=tcg", "-m",
                    "64", "-monitor", "stdio", "-netdev", fmt::format("tap,id=n0,fd={}", tap.get()),
                    "-device", "virtio-net-device,netdev=n0,mac=02:67:62:00:00:02"},
                   options);
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ(out->exit_code, 0) << out->err;
    EXPECT_THAT(out->out, testing::HasSubstr("type=tap,fd="));
}

TEST_F(SlotTest, GuestFindsItsGatewayAndIsAnsweredAtOnce) {
    auto slot = make();
    UniqueFd tap = slot->take_tap();
    std::string ask = "\x00\x01\x08\x00\x06\x04\x00\x01"s + view(kGuestMac) + "\x0a\x0b\x00\x02"s +
                      std::string(6, '\0') + "\x0a\x0b\x00\x01"s;
    send(tap.get(), frame(ETH_P_ARP, ask));
    std::string answer = receive(tap.get(), ETH_P_ARP);
    ASSERT_GE(answer.size(), 28U);
    EXPECT_EQ(answer.substr(8, 6), view(kTapMac));

    // A SYN to a closed range comes back as a reset.
    std::string syn = tcp_header(40000, 80, TH_SYN);
    send(tap.get(), frame(ETH_P_IP, packet("169.254.169.254", IPPROTO_TCP, syn)), IPPROTO_TCP);
    std::string reset = receive(tap.get(), ETH_P_IP);
    ASSERT_GE(reset.size(), 40U);
    EXPECT_EQ(reset[9], IPPROTO_TCP);
    EXPECT_TRUE(reset[33] & TH_RST);
}

TEST_F(SlotTest, FramesThatAreNotIpv4) {
    auto slot = make();
    ASSERT_TRUE(slot->set_policy(open_policy()));
    UniqueFd tap = slot->take_tap();
    std::string v6(40, '\0');
    v6[0] = 0x60;
    v6[5] = 8;
    v6[6] = 58;
    v6.replace(24, 2, "\xfe\x80");
    std::string solicitation = v6 + "\x87"s + std::string(23, '\0');
    solicitation[5] = 24;
    solicitation[7] = static_cast<char>(255);
    send(tap.get(), frame(ETH_P_IPV6, solicitation));  // every kernel does that: no line
    send(tap.get(), frame(ETH_P_IPV6, v6 + "\x80"s + std::string(7, '\0')));  // an echo request: a line
    send(tap.get(), frame(0x88cc, std::string(46, '\0')));                    // LLDP: nothing
    send(tap.get(), frame(ETH_P_8021Q, "\x00\x05\x08\x00"s + packet("8.8.8.8", 17, std::string(8, '\0'))));
    send(tap.get(), frame(ETH_P_IP, packet("127.0.0.1", 17, "\x03\xe8\x00\x35\x00\x08\x00\x00"s)));
    send(tap.get(), frame(ETH_P_IP, packet("0.0.0.7", 17, "\x03\xe8\x00\x35\x00\x08\x00\x00"s)));
    EXPECT_THAT(brief(decisions_of(*slot)),
                ElementsAre("deny icmpv6 fe80:: 0 ipv6", "deny udp 127.0.0.1 53 private",
                            "deny udp 0.0.0.7 53 private"));
}

TEST_F(SlotTest, NothingIsLeftWhenItEnds) {
    auto slot = make();
    std::string link = slot->host_link();
    auto exists = [&] {
        auto names = Links::open()->names();
        return std::ranges::find(*names, link) != names->end();
    };
    EXPECT_TRUE(exists());
    UniqueFd tap = slot->take_tap();
    slot.reset();
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_TRUE(exists()) << "the machine that has the tap still runs";
    tap.reset();
    EXPECT_TRUE(test::eventually([&] { return !exists(); }));
}

TEST_F(SlotTest, NumbersAreNotReusedWhileALinkLives) {
    auto first = make();
    UniqueFd tap = first->take_tap();
    std::size_t number = first->number();
    first.reset();
    std::vector<std::unique_ptr<Slot>> others;
    for (int i = 0; i < 5; ++i) {
        others.push_back(make());
        EXPECT_NE(others.back()->number(), number);
    }
}

TEST_F(SlotTest, RunsOutOfAddressesWithAClearError) {
    auto host = HostNetwork::create({.instance = NetWorld::unique_instance(), .block_length = 29});
    ASSERT_TRUE(host) << host.error().message;
    auto one = Slot::create(**host);
    auto two = Slot::create(**host);
    ASSERT_TRUE(one && two);
    auto three = Slot::create(**host);
    ASSERT_FALSE(three);
    EXPECT_EQ(three.error().code, ErrorCode::resource_exhausted);
}

// Not a limit, a look: printed so that a change of kind is seen.
TEST_F(SlotTest, Costs) {
    auto timed = [](int count, auto&& body) {
        std::vector<double> times;
        for (int i = 0; i < count; ++i) {
            auto start = std::chrono::steady_clock::now();
            body();
            times.push_back(
                std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
        }
        std::ranges::sort(times);
        return fmt::format("p50 {:.0f} µs, p99 {:.0f} µs", times[times.size() / 2],
                           times[times.size() * 99 / 100]);
    };
    std::vector<std::unique_ptr<Slot>> slots;
    fmt::print("create slot:            {}\n", timed(40, [&] { slots.push_back(make()); }));
    Slot& slot = *slots.back();
    fmt::print("socket():               {}\n", timed(2000, [&] { (void)slot.socket(); }));
    EgressPolicy small =
        *parse_policy({.allow_internet_access = false, .allow_out = {"8.8.8.8", "1.1.1.0/24"}});
    fmt::print("set_policy, 2 entries:  {}\n", timed(500, [&] { EXPECT_TRUE(slot.set_policy(small)); }));
    EgressPolicy large;
    for (std::uint32_t i = 0; i < 1000; ++i) large.allow.push_back(Cidr::of({0x08000000 + i * 256}, 32));
    fmt::print("set_policy, 1000:       {}\n", timed(50, [&] { EXPECT_TRUE(slot.set_policy(large)); }));
    fmt::print("suppressed():           {}\n", timed(500, [&] { (void)slot.suppressed(); }));
    fmt::print("read_decisions(), none: {}\n", timed(2000, [&] { (void)slot.read_decisions(); }));
    fmt::print("destroy slot (caller):  {}\n", timed(40, [&] { slots.pop_back(); }));
}

}  // namespace
}  // namespace gb::net
