// SPDX-License-Identifier: Apache-2.0
#include "net/links.h"

#include <algorithm>
#include <cstring>

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/pkt_sched.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <fcntl.h>
#include <fmt/format.h>

#include "base/file.h"

namespace gb::net {
namespace {

std::string_view view(const Mac& mac) {
    return {reinterpret_cast<const char*>(mac.data()), mac.size()};
}

void put_end(NetlinkMessage& message, const VethEnd& end) {
    message.put_string(IFLA_IFNAME, end.name);
    if (end.netns_fd >= 0) message.put_u32(IFLA_NET_NS_FD, static_cast<std::uint32_t>(end.netns_fd));
    if (end.group != 0) message.put_u32(IFLA_GROUP, end.group);
    if (end.mac != nullptr) message.put(IFLA_ADDRESS, view(*end.mac));
}

template <class T>
T header_of(const Message& message) {
    T header{};
    if (message.body.size() >= sizeof header) std::memcpy(&header, message.body.data(), sizeof header);
    return header;
}

template <class T>
std::string_view attributes_of(const Message& message) {
    return message.body.substr(std::min(message.body.size(), std::size_t{NLMSG_ALIGN(sizeof(T))}));
}

ifinfomsg link_header(int index = 0) {
    ifinfomsg header{};
    header.ifi_index = index;
    return header;
}

}  // namespace

Result<Links> Links::open() {
    GB_TRY_ASSIGN(NetlinkSocket socket, NetlinkSocket::open(NETLINK_ROUTE));
    return Links(std::move(socket));
}

Status Links::add_veth(const VethEnd& one, const VethEnd& other) {
    NetlinkMessage message(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, link_header());
    put_end(message, one);
    message.begin(IFLA_LINKINFO)
        .put_string(IFLA_INFO_KIND, "veth")
        .begin(IFLA_INFO_DATA)
        .begin(VETH_INFO_PEER);
    ifinfomsg peer = link_header();
    message.append(&peer, sizeof peer);
    put_end(message, other);
    message.end().end().end();
    return socket_.request(message, fmt::format("create veth {}", one.name));
}

Result<int> Links::index(std::string_view name) {
    NetlinkMessage message(RTM_GETLINK, NLM_F_ACK, link_header());
    message.put_string(IFLA_IFNAME, name);
    int index = 0;
    GB_TRY(socket_.dump(message, fmt::format("find interface {}", name), [&](const Message& answer) {
        if (answer.type == RTM_NEWLINK) index = header_of<ifinfomsg>(answer).ifi_index;
    }));
    return index;
}

Status Links::set_up(int index) {
    ifinfomsg header = link_header(index);
    header.ifi_flags = header.ifi_change = IFF_UP;
    NetlinkMessage message(RTM_NEWLINK, NLM_F_ACK, header);
    return socket_.request(message, "set interface up");
}

Status Links::set_mac(int index, const Mac& mac) {
    NetlinkMessage message(RTM_NEWLINK, NLM_F_ACK, link_header(index));
    message.put(IFLA_ADDRESS, view(mac));
    return socket_.request(message, "set hardware address");
}

Status Links::remove(std::string_view name) {
    NetlinkMessage message(RTM_DELLINK, NLM_F_ACK, link_header());
    message.put_string(IFLA_IFNAME, name);
    return socket_.request(message, fmt::format("delete interface {}", name));
}

Status Links::remove_group(std::uint32_t group) {
    NetlinkMessage message(RTM_DELLINK, NLM_F_ACK, link_header());
    message.put_u32(IFLA_GROUP, group);
    return socket_.request(message, "delete interface group");
}

Result<std::vector<std::string>> Links::names() {
    NetlinkMessage message(RTM_GETLINK, NLM_F_DUMP, link_header());
    std::vector<std::string> out;
    GB_TRY(socket_.dump(message, "list interfaces", [&](const Message& answer) {
        if (auto name = find_attribute(attributes_of<ifinfomsg>(answer), IFLA_IFNAME))
            out.emplace_back(name->text());
    }));
    return out;
}

Status Links::add_address(int index, Ipv4 address, int prefix) {
    ifaddrmsg header{};
    header.ifa_family = AF_INET;
    header.ifa_prefixlen = static_cast<std::uint8_t>(prefix);
    header.ifa_index = static_cast<std::uint32_t>(index);
    NetlinkMessage message(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, header);
    message.put_be32(IFA_LOCAL, address.value).put_be32(IFA_ADDRESS, address.value);
    return socket_.request(message, fmt::format("add address {}/{}", to_string(address), prefix));
}

Result<std::vector<Ipv4>> Links::addresses() {
    ifaddrmsg header{};
    header.ifa_family = AF_INET;
    NetlinkMessage message(RTM_GETADDR, NLM_F_DUMP, header);
    std::vector<Ipv4> out;
    GB_TRY(socket_.dump(message, "list addresses", [&](const Message& answer) {
        if (auto local = find_attribute(attributes_of<ifaddrmsg>(answer), IFA_LOCAL))
            out.push_back({local->be32()});
    }));
    return out;
}

Status Links::add_default_route(Ipv4 gateway, int index) {
    rtmsg header{};
    header.rtm_family = AF_INET;
    header.rtm_table = RT_TABLE_MAIN;
    header.rtm_protocol = RTPROT_STATIC;
    header.rtm_type = RTN_UNICAST;
    NetlinkMessage message(RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, header);
    message.put_be32(RTA_GATEWAY, gateway.value).put_u32(RTA_OIF, static_cast<std::uint32_t>(index));
    return socket_.request(message, fmt::format("add default route via {}", to_string(gateway)));
}

Status Links::add_neighbour(int index, Ipv4 address, const Mac& mac) {
    ndmsg header{};
    header.ndm_family = AF_INET;
    header.ndm_ifindex = index;
    header.ndm_state = NUD_PERMANENT;
    NetlinkMessage message(RTM_NEWNEIGH, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, header);
    message.put_be32(NDA_DST, address.value).put(NDA_LLADDR, view(mac));
    return socket_.request(message, fmt::format("add neighbour {}", to_string(address)));
}

Result<std::vector<Route>> Links::routes() {
    rtmsg header{};
    header.rtm_family = AF_INET;
    NetlinkMessage message(RTM_GETROUTE, NLM_F_DUMP, header);
    std::vector<Route> out;
    GB_TRY(socket_.dump(message, "list routes", [&](const Message& answer) {
        if (answer.type != RTM_NEWROUTE) return;
        auto head = header_of<rtmsg>(answer);
        Route route{.to = {.base = {}, .length = std::min<int>(head.rtm_dst_len, 32)},
                    .protocol = head.rtm_protocol,
                    .table = head.rtm_table,
                    .type = head.rtm_type};
        for (const Attribute& attribute : parse_attributes(attributes_of<rtmsg>(answer))) {
            if (attribute.type == RTA_DST) route.to = Cidr::of({attribute.be32()}, route.to.length);
            if (attribute.type == RTA_PRIORITY) route.priority = attribute.u32();
            if (attribute.type == RTA_TABLE) route.table = attribute.u32();
        }
        out.push_back(route);
    }));
    return out;
}

Status Links::unreachable(std::uint16_t type, unsigned flags, const Cidr& to, std::uint8_t protocol,
                          std::uint32_t priority) {
    rtmsg header{};
    header.rtm_family = AF_INET;
    header.rtm_dst_len = static_cast<std::uint8_t>(to.length);
    header.rtm_table = RT_TABLE_MAIN;
    header.rtm_protocol = protocol;
    header.rtm_type = RTN_UNREACHABLE;
    NetlinkMessage message(type, NLM_F_ACK | flags, header);
    message.put_be32(RTA_DST, to.base.value).put_u32(RTA_PRIORITY, priority);
    return socket_.request(message, fmt::format("unreachable route for {}", to_string(to)));
}

Status Links::add_unreachable(const Cidr& to, std::uint8_t protocol, std::uint32_t priority) {
    return unreachable(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, to, protocol, priority);
}

Status Links::limit_rate(int index, std::uint64_t bytes_s) {
    tcmsg header{};
    header.tcm_family = AF_UNSPEC;
    header.tcm_ifindex = index;
    header.tcm_parent = TC_H_ROOT;
    if (bytes_s == 0) {
        NetlinkMessage message(RTM_DELQDISC, NLM_F_ACK, header);
        Status status = socket_.request(message, "remove rate limit");
        return !status && status.error().code == ErrorCode::not_found ? Status() : status;
    }
    // One packet as the kernel hands it on, with what is to be cut into segments, must fit.
    constexpr std::uint64_t kLeastBurst = std::uint64_t{96} << 10, kMostBurst = std::uint64_t{8} << 20;
    const std::uint64_t burst = std::clamp(bytes_s / 50, kLeastBurst, kMostBurst);
    tc_tbf_qopt options{};
    options.rate.linklayer = TC_LINKLAYER_ETHERNET;
    options.rate.rate = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes_s, UINT32_MAX));
    options.limit = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::max(bytes_s / 10, 2 * burst), std::uint64_t{256} << 20));
    NetlinkMessage message(RTM_NEWQDISC, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, header);
    message.put_string(TCA_KIND, "tbf").begin(TCA_OPTIONS);
    message.put(TCA_TBF_PARMS, {reinterpret_cast<const char*>(&options), sizeof options});
    if (bytes_s > UINT32_MAX)
        message.put(TCA_TBF_RATE64, {reinterpret_cast<const char*>(&bytes_s), sizeof bytes_s});
    message.put_u32(TCA_TBF_BURST, static_cast<std::uint32_t>(burst)).end();
    return socket_.request(message, "limit rate");
}

Status Links::remove_unreachable(const Cidr& to, std::uint8_t protocol, std::uint32_t priority) {
    return unreachable(RTM_DELROUTE, 0, to, protocol, priority);
}

Result<UniqueFd> open_tap(std::string_view name) {
    GB_TRY_ASSIGN(UniqueFd fd, open_file("/dev/net/tun", O_RDWR | O_NONBLOCK));
    ifreq request{};
    std::memcpy(request.ifr_name, name.data(), std::min(name.size(), std::size_t{IFNAMSIZ - 1}));
    request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
    if (::ioctl(fd.get(), TUNSETIFF, &request) != 0)
        return fail_errno(fmt::format("create tap device {}", name));
    return fd;
}

Status set_sysctl(std::string_view name, std::string_view value) {
    return write_control_file(fmt::format("/proc/sys/{}", name), value);
}

Result<std::string> get_sysctl(std::string_view name) {
    GB_TRY_ASSIGN(std::string text, read_file(fmt::format("/proc/sys/{}", name)));
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

}  // namespace gb::net
