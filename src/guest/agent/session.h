// SPDX-License-Identifier: Apache-2.0
// Signals for everything that a command has started.
#pragma once

#include <sys/types.h>

namespace gb::agent {

// To the process group that `leader` leads. False when nobody is left in it.
bool signal_group(pid_t leader, int signal);

// SIGKILL for the group of `leader` and for every process of its session: jobs of an interactive shell have
// groups of their own. A program that made itself a new session (a daemon) is out of reach.
void kill_session(pid_t leader);

}  // namespace gb::agent
