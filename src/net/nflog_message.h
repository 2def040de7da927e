// SPDX-License-Identifier: Apache-2.0
// What the kernel's packet log sends, include/uapi/linux/netfilter/nfnetlink_log.h, as decisions. Pure: every
// byte of a packet is the guest's own, so the parser is fuzzed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "net/decision.h"

namespace gb::net {

struct NflogPacket {
    Decision decision;  // time_ms is left to the caller
    std::optional<std::uint32_t> sequence;
};

// `body`: what follows the netlink header of a packet message (nflog_is_packet). nullopt when it carries no
// prefix of ours; a packet too short to have addresses gives a decision without them.
std::optional<NflogPacket> parse_nflog(std::string_view body);
bool nflog_is_packet(std::uint16_t message_type);

}  // namespace gb::net
