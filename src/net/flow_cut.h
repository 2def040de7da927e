// SPDX-License-Identifier: Apache-2.0
// Ends TCP connections of a guest that the packet rules deny from now on. Rules alone stop their bytes, but a
// program that only listens, or that waits for an answer that was dropped, would not hear of it.
//
// Each connection gets a segment that is outside of its window. The guest must answer that with an
// acknowledgement (RFC 9293, 3.10.7.4), which the rules meet with a reset; and as that is made from the
// guest's own numbers, it is valid. The segment goes to the link itself, past rules and connection tracking.
#pragma once

#include <span>

#include "base/result.h"
#include "net/decision.h"
#include "net/policy.h"

namespace gb::net {

// Whether the slot's rules deny the packets of a connection by its address and port, under this policy.
bool denies_packets(const EgressPolicy& policy, const Ceiling& ceiling, const PacketSets& sets, Ipv4 address,
                    std::uint16_t port);

// In the namespace of the calling thread, for connections as FlowReader::open_flows() has them. What is no
// TCP is left alone.
Status provoke_resets(std::span<const Decision> flows);

}  // namespace gb::net
