// SPDX-License-Identifier: Apache-2.0
// Holding what users run while the machine is saved: what runs on later, here or in a copy, does so after the
// clock is right and the random pool is new.
#pragma once

#include <array>
#include <chrono>

#include "base/result.h"

namespace gb::agent {

// Of the control groups whose folders these are; -1 is left out. Waits, not for long, until nothing in them
// runs. Released by itself after a few seconds of the guest's time, in case whoever asked cannot say that it
// came to nothing.
Status hold_processes(std::array<int, 2> groups);
Status release_processes(std::array<int, 2> groups);  // not held is success

}  // namespace gb::agent
