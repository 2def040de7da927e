// SPDX-License-Identifier: Apache-2.0
// What only PID 1 of a sandbox does to its machine. Failures are logged and the sandbox goes on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "guest/agent/init_request.h"

namespace gb::agent {

// Clock, entropy and host name of an /init request.
void prepare_machine(const InitRequest& request);

// Only when it differs by more than the few milliseconds that a request takes: small steps help nobody.
Status set_clock(std::int64_t unix_ms);
// Credited and mixed in at once: two forks of one snapshot must not go on with the same random numbers.
Status add_entropy(std::string_view bytes);
Status set_hostname(const std::string& name);
// Puts the name into /etc/hosts, or sudo asks the network for it every time. Writes to the disk: for after the answer.
Status add_to_hosts(const std::string& name);

// Writes everything to the disk and lets nobody write until it is thawed: for a machine whose disk is kept without its
// memory. It thaws by itself after a while, in case whoever asked cannot say that it came to nothing. Waits for the disk.
Status freeze_disk();
Status thaw_disk();  // not frozen is success

// `hosts` with the agent's own line for `name` as its last. Pure.
std::string with_host_line(std::string_view hosts, std::string_view name);

}  // namespace gb::agent
