// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>

#include "base/file.h"
#include "base/log.h"
#include "guest/agent/system_setup.h"

namespace gb::agent {
namespace {

struct Setting {
    const char* name;
    const char* value;
};

// The kernel derives its limits from the size of the machine, and a small one has too little for a folder of
// packages. Memory is used only by watches that are there.
constexpr std::array kSettings{
    Setting{"fs/inotify/max_user_instances", "8192"},
    Setting{"fs/inotify/max_user_watches", "524288"},
    Setting{"fs/inotify/max_queued_events", "65536"},
};

}  // namespace

void set_kernel_limits() {
    for (const Setting& setting : kSettings)
        if (const Status written =
                write_control_file(std::string("/proc/sys/") + setting.name, setting.value);
            !written)
            log::warn("kernel limit", {{"error", written.error().message}});
}

}  // namespace gb::agent
