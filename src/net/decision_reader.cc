// SPDX-License-Identifier: Apache-2.0
#include "net/decision_reader.h"

#include <cerrno>

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "base/clock.h"
#include "net/netlink.h"
#include "net/nflog_message.h"

namespace gb::net {
namespace {

constexpr std::uint32_t kCopy = 96;        // bytes of a packet: headers, no contents
constexpr int kReceiveBuffer = 512 << 10;  // more than a burst of the rules' rate limit
constexpr std::size_t kReadBuffer = 65536;
constexpr std::uint32_t kFlushHundredths = 2;  // the kernel holds decisions back for at most this long …
constexpr std::uint32_t kFlushCount = 32;      // … or this many

NetlinkMessage config(std::uint16_t group) {
    nfgenmsg header{.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(group)};
    return {static_cast<std::uint16_t>(NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG), NLM_F_ACK, header};
}

}  // namespace

DecisionReader::DecisionReader(UniqueFd fd) : fd_(std::move(fd)), buffer_(kReadBuffer) {}

Result<DecisionReader> DecisionReader::open(std::uint16_t group) {
    GB_TRY_ASSIGN(NetlinkSocket socket, NetlinkSocket::open(NETLINK_NETFILTER));
    socket.set_receive_buffer(kReceiveBuffer);

    nfulnl_msg_config_cmd bind{.command = NFULNL_CFG_CMD_BIND};
    NetlinkMessage first = config(group);
    first.put(NFULA_CFG_CMD, {reinterpret_cast<const char*>(&bind), sizeof bind});
    GB_TRY(socket.request(first, fmt::format("bind packet log group {}", group)));

    nfulnl_msg_config_mode mode{.copy_range = htonl(kCopy), .copy_mode = NFULNL_COPY_PACKET, ._pad = 0};
    NetlinkMessage second = config(group);
    second.put(NFULA_CFG_MODE, {reinterpret_cast<const char*>(&mode), sizeof mode})
        .put_be32(NFULA_CFG_TIMEOUT, kFlushHundredths)
        .put_be32(NFULA_CFG_QTHRESH, kFlushCount)
        .put_be16(NFULA_CFG_FLAGS, NFULNL_CFG_F_SEQ);
    GB_TRY(socket.request(second, fmt::format("configure packet log group {}", group)));

    GB_TRY_ASSIGN(UniqueFd fd, socket.release_for_reading());
    return DecisionReader(std::move(fd));
}

std::vector<Decision> DecisionReader::read(std::size_t most) {
    std::vector<Decision> out;
    while (out.size() < most) {
        ssize_t n = ::recv(fd_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
        // ENOBUFS says that messages were dropped and is said once; how many shows in the next sequence
        // number.
        if (n < 0 && (errno == EINTR || errno == ENOBUFS)) continue;
        if (n <= 0) break;
        std::int64_t time = now_ms();
        for (const Message& message : parse_messages({buffer_.data(), static_cast<std::size_t>(n)})) {
            if (!nflog_is_packet(message.type)) continue;
            auto packet = parse_nflog(message.body);
            if (!packet) continue;
            if (packet->sequence) {
                lost_ += *packet->sequence - next_sequence_;
                next_sequence_ = *packet->sequence + 1;
            }
            packet->decision.time_ms = time;
            out.push_back(std::move(packet->decision));
        }
    }
    return out;
}

}  // namespace gb::net
