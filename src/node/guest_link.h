// SPDX-License-Identifier: Apache-2.0
// How the host reaches a guest through its slot, and the address that the guest's network device has in every slot.
#pragma once

#include <memory>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/process_watch.h"
#include "engine/engine.h"
#include "net/slot.h"
#include "net/slot_rules.h"
#include "node/agent_client.h"

namespace gb {

// That the guest of a machine is getting on: it prints, or the machine needs a processor. The machine must outlive it.
inline Signs machine_signs(const engine::Machine& machine) {
    return [&machine, watch = std::make_shared<ProcessWatch>(machine.pid(), Family::alone)](StallLimit& limit) -> Status {
        if (!machine.alive()) return fail(ErrorCode::unavailable, "the machine has ended");
        limit.watch("console", machine.console_bytes());
        if (watch->moved()) limit.moved();
        return {};
    };
}

// Slot and machine must outlive the client.
inline AgentClient guest_link(const net::Slot& slot, const engine::Machine& machine) {
    return AgentClient([&slot] { return slot.socket(); }, machine_signs(machine));
}

inline std::string guest_mac() {
    return fmt::format("{:02x}", fmt::join(net::kGuestMac, ":"));
}

}  // namespace gb
