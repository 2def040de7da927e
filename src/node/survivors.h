// SPDX-License-Identifier: Apache-2.0
// Machines that outlived the previous server of a data folder: found by their records before anything is reclaimed,
// without touching them, so that a server is there at once however many they are. They are taken over afterwards, by
// SandboxMachine::adopt.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "node/machine_record.h"
#include "node/paused_sandbox.h"
#include "node/template_store.h"

namespace gb {

// Whoever does not make a sandbox of it lets it run on: only what is decided to end, ends.
struct Survivor {
    MachineRecord record;
    StoredTemplate from;
};

// What is the same for a sandbox's machine whenever it is started or taken over. `tag` is the instance's.
engine::MachineSpec sandbox_machine_spec(const SandboxFolder& folder, const StoredTemplate& from,
                                         std::uint16_t tag, std::size_t slot);
engine::MachineSpec survivor_spec(const SandboxFolder& folder, const Survivor& survivor, std::uint16_t tag);

// Those whose record fits what runs; the rest is for the caller to reclaim, with its reason in the log. A sandbox that
// is paused is none to take over, even if its machine has not ended yet: what was saved is what it is.
std::vector<Survivor> find_survivors(engine::Engine& engine, const TemplateStore& templates,
                                     const std::filesystem::path& sandboxes, std::uint16_t tag);

}  // namespace gb
