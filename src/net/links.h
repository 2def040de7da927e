// SPDX-License-Identifier: Apache-2.0
// Network devices, addresses, routes and neighbours of one network namespace, rtnetlink(7).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/cidr.h"
#include "net/netlink.h"

namespace gb::net {

using Mac = std::array<std::uint8_t, 6>;

struct VethEnd {
    std::string name;
    int netns_fd = -1;         // -1: the namespace of the Links object
    std::uint32_t group = 0;   // interface group, 0 is the default one
    const Mac* mac = nullptr;  // null: a random one
};

struct Route {
    Cidr to;
    std::uint8_t protocol = 0;   // who made it
    std::uint32_t priority = 0;  // metric
    std::uint32_t table = 0;
    std::uint8_t type = 0;  // RTN_UNICAST and so on
};

class Links {
  public:
    static Result<Links> open();  // for the namespace that the calling thread is in

    Status add_veth(const VethEnd& one, const VethEnd& other);
    Result<int> index(std::string_view name);
    Status set_up(int index);
    Status set_mac(int index, const Mac& mac);
    Status remove(std::string_view name);
    Status remove_group(std::uint32_t group);  // all at once: one grace period of the kernel, not one each
    Result<std::vector<std::string>> names();

    Status add_address(int index, Ipv4 address, int prefix);
    Result<std::vector<Ipv4>> addresses();

    Status add_default_route(Ipv4 gateway, int index);
    Status add_neighbour(int index, Ipv4 address, const Mac& mac);  // permanent
    Result<std::vector<Route>> routes();                            // IPv4, all tables
    // A route that refuses: packets to parts of the block that nobody owns do not leave by the default route.
    Status add_unreachable(const Cidr& to, std::uint8_t protocol, std::uint32_t priority);
    // At most so many bytes of packets a second leave by this interface, tc-tbf(8); 0: as fast as it can. What
    // comes faster waits, a tenth of a second at most, and is then dropped.
    Status limit_rate(int index, std::uint64_t bytes_s);
    Status remove_unreachable(const Cidr& to, std::uint8_t protocol, std::uint32_t priority);

  private:
    explicit Links(NetlinkSocket socket) : socket_(std::move(socket)) {}
    Status unreachable(std::uint16_t type, unsigned flags, const Cidr& to, std::uint8_t protocol,
                       std::uint32_t priority);
    NetlinkSocket socket_;
};

// A new tap device in the namespace of the calling thread, and its one queue: with a virtio header in front
// of each frame, as QEMU wants it, not persistent. The device lives as long as the descriptor.
Result<UniqueFd> open_tap(std::string_view name);

// Writes a file under /proc/sys as the namespace of the calling thread sees it: "net/ipv4/ip_forward".
Status set_sysctl(std::string_view name, std::string_view value);
Result<std::string> get_sysctl(std::string_view name);

}  // namespace gb::net
