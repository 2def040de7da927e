// SPDX-License-Identifier: Apache-2.0
// For tests: a host with an internet behind it, all in namespaces made here, gone with the object. The thread
// that makes one is inside "the host" until the object ends. Nothing of the real network is touched.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "net/decision.h"
#include "net/host_network.h"
#include "net/netns.h"
#include "net/slot.h"

namespace gb::net {

// Skips the calling test when it has not the rights to make namespaces.
#define GB_NEEDS_ROOT() \
    if (::geteuid() != 0) GTEST_SKIP() << "network namespaces and nftables need root"

class NetWorld {
  public:
    NetWorld();
    ~NetWorld();

    // Runs `nft`, `ip` and the like where the calling thread is; its output.
    static std::string command(const std::vector<std::string>& argv);
    // An id that no other test has, so that tests run beside each other.
    static std::string unique_instance();

    static constexpr std::string_view kHostAddress = "203.0.113.1";  // of the host towards the internet
    static constexpr std::string_view kServer =
        "203.0.113.10";  // in the internet, as all public addresses are

    [[nodiscard]] int internet() const { return internet_.get(); }

  private:
    void serve();
    std::optional<NetnsScope> host_;
    UniqueFd internet_;
    std::atomic<bool> stopping_ = false;
    std::thread server_;
};

// A test with such a host, and the network of a server on it.
class HostTest : public testing::Test {
  protected:
    void SetUp() override {
        GB_NEEDS_ROOT();
        world_.emplace();
        auto host = HostNetwork::create({.instance = NetWorld::unique_instance()});
        ASSERT_TRUE(host) << host.error().message;
        host_ = std::move(*host);
    }

    std::optional<NetWorld> world_;
    std::unique_ptr<HostNetwork> host_;
};

// What the guest tries. All return 0 for an answer and an errno otherwise; silence is ETIMEDOUT. They are
// called in the namespace of the guest: in_guest(slot, [] { return tcp_probe("8.8.8.8", 443); }).
constexpr std::chrono::milliseconds kPatience{400};
int tcp_probe(std::string_view address, int port, std::chrono::milliseconds patience = kPatience);
int udp_probe(std::string_view address, int port);
int icmp_probe(std::string_view address);
void send_udp(std::string_view address, int port, int count);
// An IPv4 packet as it is; lengths and checksums are filled in.
void send_raw(std::string_view source, std::string_view destination, std::uint8_t protocol,
              std::string payload);
std::string tcp_header(int source_port, int port, std::uint8_t flags);

// A connected TCP socket to an echo server of the internet; invalid when refused.
UniqueFd tcp_connect(std::string_view address, int port);
// Sends and waits for the echo; 0 or an errno.
int echo(int fd, std::string_view text);

template <class F>
auto in_netns(int netns, F&& body) {
    auto scope = NetnsScope::enter(netns);
    EXPECT_TRUE(scope) << scope.error().message;
    return body();
}
template <class F>
auto in_guest(const Slot& slot, F&& body) {
    return in_netns(slot.guest_netns_fd(), std::forward<F>(body));
}

// Reads until nothing came for a while; what was decided, without the ends of connections.
std::vector<Decision> decisions_of(Slot& slot);
// The ends of connections: that many, or what comes until nothing came for `patience`.
std::vector<Decision> ends_of(Slot& slot, std::size_t count, std::chrono::milliseconds patience);
std::vector<HostDecision> decisions_of(HostNetwork& host);
// "deny tcp 10.0.0.1 22 private", for comparing.
std::string brief(const Decision& decision);
std::vector<std::string> brief(const std::vector<Decision>& decisions);

}  // namespace gb::net
