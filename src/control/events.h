// SPDX-License-Identifier: Apache-2.0
// What is told about sandboxes: the events of the contract (7.10). Pure.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "store/store.h"

namespace gb {

// The contract's, and one of ours: a paused sandbox will be removed ("expiring").
inline constexpr std::array<std::string_view, 7> kEventTypes{
    "sandbox.lifecycle.created", "sandbox.lifecycle.killed",  "sandbox.lifecycle.updated",
    "sandbox.lifecycle.paused",  "sandbox.lifecycle.resumed", "sandbox.lifecycle.checkpointed",
    "sandbox.lifecycle.expiring"};

// Each happens now.
Event created_event(const SandboxRecord& record);
Event resumed_event(const SandboxRecord& record);
Event updated_event(const SandboxRecord& record);  // its end was moved
Event network_event(const SandboxRecord& record);  // updated: its network was replaced
// `run` is the one that ended with it; null when the sandbox was not running.
Event killed_event(const SandboxRecord& record, const SandboxRun* run, std::string_view reason);
Event paused_event(const SandboxRecord& record, const SandboxRun& run);
Event checkpointed_event(const SandboxRecord& record, const BuildRecord& snapshot);  // it was copied and runs on
// It is paused, and removed at that time unless it is resumed.
Event expiring_event(const SandboxRecord& record, std::int64_t remove_ms);

// The same of a snapshot, told about the sandbox that it was taken of.
Event snapshot_expiring_event(const std::string& team_id, const BuildRecord& snapshot, std::int64_t remove_ms);

// The same as an entry of the sandbox's log: logger "sandbox", the host's time.
LogEntry lifecycle_entry(const Event& event);
// Puts an event and its log entry into a change.
void tell(Change& change, Event event);

// The event as clients and webhooks get it.
std::string event_json(const Event& event);

// The signature of a delivery: base64url, unpadded, of SHA-256(secret + body).
std::string webhook_signature(std::string_view secret, std::string_view body);

}  // namespace gb
