// SPDX-License-Identifier: Apache-2.0
#include "net/flow_reader.h"

#include <cerrno>

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_compat.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "net/conntrack_message.h"
#include "net/netlink.h"

namespace gb::net {
namespace {

constexpr int kFlowReceiveBuffer = 512 << 10;
constexpr std::size_t kFlowReadBuffer = 65536;
constexpr std::uint16_t kDelete = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE;

template <class Wanted>
Result<std::vector<Decision>> list_flows(Wanted wanted) {
    GB_TRY_ASSIGN(NetlinkSocket socket, NetlinkSocket::open(NETLINK_NETFILTER));
    const nfgenmsg header{.nfgen_family = AF_INET, .version = NFNETLINK_V0, .res_id = 0};
    NetlinkMessage get(NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET, NLM_F_DUMP, header);
    std::vector<Decision> out;
    const std::int64_t time = now_ms();
    GB_TRY(socket.dump(get, "list connections", [&](const Message& message) {
        auto flow = parse_flow(message.body);
        if (!flow || !wanted(message.body)) return;
        flow->time_ms = time;
        out.push_back(std::move(*flow));
    }));
    return out;
}

}  // namespace

FlowReader::FlowReader(UniqueFd fd) : fd_(std::move(fd)), buffer_(kFlowReadBuffer) {}

Result<FlowReader> FlowReader::open() {
    GB_TRY_ASSIGN(NetlinkSocket socket, NetlinkSocket::open(NETLINK_NETFILTER));
    socket.set_receive_buffer(kFlowReceiveBuffer);
    // One without an address of its own is left out of what is told to all.
    sockaddr_nl own{};
    own.nl_family = AF_NETLINK;
    if (::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0)
        return fail_errno("bind connection socket");
    const int group = NFNLGRP_CONNTRACK_DESTROY;
    if (::setsockopt(socket.fd(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) != 0)
        return fail_errno("subscribe to ends of connections");
    GB_TRY_ASSIGN(UniqueFd fd, socket.release_for_reading());
    return FlowReader(std::move(fd));
}

Result<std::vector<Decision>> FlowReader::open_flows() {
    return list_flows([](std::string_view) { return true; });
}

Result<std::vector<Decision>> FlowReader::open_tcp_flows() {
    return list_flows(is_open_tcp);
}

std::vector<Decision> FlowReader::read(std::size_t most) {
    std::vector<Decision> out;
    while (out.size() < most) {
        const ssize_t n = ::recv(fd_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
        // ENOBUFS: some were dropped. What they carried is not known; that they were allowed is in the log.
        if (n < 0 && (errno == EINTR || errno == ENOBUFS)) continue;
        if (n <= 0) break;
        const std::int64_t time = now_ms();
        for (const Message& message : parse_messages({buffer_.data(), static_cast<std::size_t>(n)})) {
            if (message.type != kDelete) continue;
            auto flow = parse_flow(message.body);
            if (!flow) continue;
            flow->time_ms = time;
            out.push_back(std::move(*flow));
        }
    }
    return out;
}

}  // namespace gb::net
