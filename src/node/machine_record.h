// SPDX-License-Identifier: Apache-2.0
// What a running sandbox's folder says of its machine (machine.json), so that a later server can take the
// machine over. It is there exactly as long as the machine may be taken over: written when the guest has its
// identity, removed before anything of it is taken down. Holds no token and nothing of what the client put
// into the environment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/jail.h"
#include "node/manifest.h"
#include "node/node.h"

namespace gb {

struct MachineRecord {
    std::string id;
    std::string cgroup;  // the name of its control group; empty: the id
    Manifest from;       // the template's build that it runs on, as it was
    engine::ProcessTrace process;
    std::size_t slot = 0;
    std::uint64_t netns = 0;  // net::netns_id of the slot
    NetworkRequest network;   // the policy in force, as it was asked for

    [[nodiscard]] const std::string& cgroup_name() const { return cgroup.empty() ? id : cgroup; }
};

std::string write_record(const MachineRecord& record);
// Strict: what is missing, of another kind or unknown among the network's fields is an error, because the
// policy is made of it. failed_precondition when it is of another format version, data_loss when it cannot be
// read.
Result<MachineRecord> parse_record(std::string_view text);

// Appears whole or not at all; not synced, because no machine outlives a power failure.
Status put_record(const std::filesystem::path& file, const MachineRecord& record);
Status remove_record(const std::filesystem::path& file);  // missing is success

}  // namespace gb
