// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/terminal.h"

#include <algorithm>

#include <sys/ioctl.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

namespace gb::agent {

Result<Terminal> open_terminal(const TerminalSize& size, uid_t owner, gid_t group) {
    Terminal terminal;
    terminal.master.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!terminal.master) return fail_errno("open a terminal (/dev/ptmx)");
    if (::unlockpt(terminal.master.get()) != 0) return fail_errno("unlock the terminal");
    // By the master, not by name: /dev/pts may be another instance or not be there.
    terminal.slave.reset(::ioctl(terminal.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!terminal.slave) {
        char name[64];
        if (::ptsname_r(terminal.master.get(), name, sizeof name) != 0)
            return fail_errno("name the terminal");
        terminal.slave.reset(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
        if (!terminal.slave) return fail_errno("open the terminal");
    }
    termios settings{};
    if (::tcgetattr(terminal.slave.get(), &settings) == 0) {
        settings.c_iflag |= IUTF8;
        ::tcsetattr(terminal.slave.get(), TCSANOW, &settings);
    }
    // Best effort: without root the terminal belongs to the agent's own user already.
    if (::fchown(terminal.slave.get(), owner, group) == 0) ::fchmod(terminal.slave.get(), 0620);
    GB_TRY(resize_terminal(terminal.master.get(), size));
    return terminal;
}

Status resize_terminal(int master, const TerminalSize& size) {
    winsize window{};
    window.ws_col = static_cast<unsigned short>(std::min<std::uint32_t>(size.cols, 0xFFFF));
    window.ws_row = static_cast<unsigned short>(std::min<std::uint32_t>(size.rows, 0xFFFF));
    if (::ioctl(master, TIOCSWINSZ, &window) != 0) return fail_errno("resize the terminal");
    return {};
}

}  // namespace gb::agent
