// SPDX-License-Identifier: Apache-2.0
// A guest that tries the machine it is in, for `glovebox doctor --engine`.
#pragma once

namespace gb::init {

// Goes on for ever. Every round checks memory that it filled when it began, what the round before wrote to the disk, and
// that the clock does not go back; it changes some of the memory and a block of the disk, sleeps for a moment, and says
// on the console "glovebox-trial: <round> <milliseconds since boot> <what>", where <what> is "ok" or names what is
// wrong: "memory", "disk" or "clock".
[[noreturn]] void run_trial(const char* disk);

}  // namespace gb::init
