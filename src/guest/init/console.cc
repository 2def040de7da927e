// SPDX-License-Identifier: Apache-2.0
#include "guest/init/console.h"

#include <string>

#include <sys/reboot.h>

#include <termios.h>
#include <unistd.h>

#include "base/file.h"

namespace gb::init {

void say_plain(std::string_view text) {
    (void)write_all(STDOUT_FILENO, std::string(text) + "\n");
}

void say(std::string_view text) {
    say_plain("glovebox-init: " + std::string(text));
}

void end_machine() {
    ::tcdrain(STDOUT_FILENO);
    ::sync();
    ::reboot(RB_AUTOBOOT);
    for (;;) ::pause();  // only when this is not PID 1 of a machine
}

void give_up(std::string_view reason) {
    say(reason);
    end_machine();
}

}  // namespace gb::init
