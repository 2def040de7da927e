// How the host reaches a guest through its slot, and the address that the guest's network device has in every slot.
#pragma once

#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "net/slot.h"
#include "net/slot_rules.h"
#include "node/agent_client.h"

namespace gb {

// The slot must outlive the client.
inline AgentClient guest_link(const net::Slot& slot) {
    return AgentClient([&slot] { return slot.socket(); });
}

inline std::string guest_mac() {
    return fmt::format("{:02x}", fmt::join(net::kGuestMac, ":"));
}

}  // namespace gb
