// SPDX-License-Identifier: Apache-2.0
// The only voice of glovebox-init: lines on the console of the machine.
#pragma once

#include <string_view>

namespace gb::init {

void say(std::string_view text);  // "glovebox-init: <text>"
void say_plain(std::string_view text);

// Restarts the machine, which ends it: QEMU runs with -no-reboot, and microvm has no power-off. Waits until
// the console has taken everything.
[[noreturn]] void end_machine();

// say(reason), then end_machine().
[[noreturn]] void give_up(std::string_view reason);

}  // namespace gb::init
