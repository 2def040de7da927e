// SPDX-License-Identifier: Apache-2.0
// From a start request to what is to be executed: user, environment, working directory (contract 3.3).
#pragma once

#include "base/result.h"
#include "guest/agent/process_table.h"
#include "guest/agent/settings.h"
#include "guest/agent/users.h"

namespace gb::agent {

// Lowest to highest: PATH, the user's HOME, USER, LOGNAME and SHELL, the global variables, the request's.
Environment process_environment(const Settings& settings, const User& user, const Environment& requested);

// invalid_argument names what is wrong: no program, a NUL byte, a variable without a proper name, a working
// directory that does not exist.
Result<Launch> prepare_launch(const ::process::StartRequest& request, const Settings& settings,
                              const User& user, const UserTable& users, const ProcessLimits& limits);

}  // namespace gb::agent
