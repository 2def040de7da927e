// SPDX-License-Identifier: Apache-2.0
// Names of files that the agent has not completed yet. They are there for the moment between a finished file
// and its rename; a watcher does not report them, but reads from them what the rename means.
#pragma once

#include <string>
#include <string_view>

#include "base/ids.h"

namespace gb::agent {

inline constexpr std::string_view kNewPrefix = ".glovebox-new-";
inline constexpr std::string_view kOverPrefix = ".glovebox-over-";

// `is_new`: nothing has the final name yet.
inline std::string temporary_name(bool is_new) {
    return std::string(is_new ? kNewPrefix : kOverPrefix) + random_id(16);
}
inline bool temporary_is_new(std::string_view name) {
    return name.starts_with(kNewPrefix);
}
inline bool is_temporary(std::string_view name) {
    return temporary_is_new(name) || name.starts_with(kOverPrefix);
}

}  // namespace gb::agent
