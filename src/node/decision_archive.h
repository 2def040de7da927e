// SPDX-License-Identifier: Apache-2.0
// Decision logs of sandboxes that are gone: <folder>/<id>.log, with an older part beside it. They are proof
// of where code could and could not go, and outlive it for a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "node/paused_sandbox.h"

namespace gb {

// Where the log of a sandbox is now; it need not exist.
std::filesystem::path archived_log(const std::filesystem::path& archive, const std::string& id);

// Takes the log out of the folder of a sandbox that is about to be removed.
Status keep_decisions(const std::filesystem::path& archive, const std::string& id,
                      const SandboxFolder& folder);

// Removes what was written last before that moment of the wall clock. What cannot be removed is left for the
// next time.
void remove_old_decisions(const std::filesystem::path& archive, std::int64_t before_ms);

}  // namespace gb
