// SPDX-License-Identifier: Apache-2.0
// glovebox-init: /init of the guest's initramfs. Loads the modules, mounts the root disk, puts our programs
// where the sandbox cannot remove them, and becomes the agent. Any failure is one line on the console and the
// end of the machine.
#include <algorithm>
#include <string>

#include <unistd.h>

#include "base/file.h"
#include "guest/init/console.h"
#include "guest/init/modules.h"
#include "guest/init/mounts.h"
#include "guest/init/trial.h"

namespace gb::init {
namespace {

constexpr const char* kAgent = "/run/glovebox/bin/glovebox-agent";

bool has_parameter(std::string_view command_line, std::string_view name) {
    while (!command_line.empty()) {
        std::size_t end = std::min(command_line.find_first_of(" \n"), command_line.size());
        if (command_line.substr(0, end) == name) return true;
        command_line.remove_prefix(std::min(end + 1, command_line.size()));
    }
    return false;
}

// The name in /etc/hosts, or sudo complains; the agent may change it.
void set_host_name() {
    auto name = read_file("/etc/hostname");
    if (!name) return;
    name->resize(std::min(name->find_first_of(" \n"), name->size()));
    if (!name->empty()) (void)::sethostname(name->data(), name->size());
}

Status start() {
    GB_TRY(mount_kernel_file_systems());
    GB_TRY_ASSIGN(std::string command_line, read_file("/proc/cmdline"));
    if (has_parameter(command_line, "glovebox.probe")) {
        say_plain("glovebox-probe: ok");
        end_machine();
    }
    GB_TRY(load_modules("/modules"));
    if (has_parameter(command_line, "glovebox.trial")) {
        GB_TRY(wait_for_disk("/dev/vda"));
        run_trial("/dev/vda");
    }
    GB_TRY(mount_root("/dev/vda", "/newroot"));
    GB_TRY(place_programs("/glovebox/bin", "/newroot"));
    GB_TRY(switch_root("/newroot"));
    set_host_name();

    const char* argv[] = {kAgent, "--init", nullptr};
    const char* env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
                         "TERM=linux", nullptr};
    ::execve(kAgent, const_cast<char**>(argv), const_cast<char**>(env));
    return fail_errno(std::string("exec ") + kAgent);
}

}  // namespace
}  // namespace gb::init

int main() {
    if (::getpid() != 1) {
        gb::init::say("this is the first program of a virtual machine, not for use elsewhere");
        return 2;
    }
    gb::Status status = gb::init::start();
    gb::init::give_up(status.error().message);
}
