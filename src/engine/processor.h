// SPDX-License-Identifier: Apache-2.0
// The processor of a host, as far as a machine that was captured on it depends on it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gb::engine {

struct Processor {
    std::string vendor;  // "GenuineIntel", "AuthenticAMD"
    int family = 0, model = 0;
    std::string name;                // for people
    std::vector<std::string> flags;  // what it can do, in the kernel's words; sorted, each once
    bool operator==(const Processor&) const = default;
};

// A field of the first processor of /proc/cpuinfo, such as "model name"; nothing when it is not there. Pure.
std::optional<std::string_view> cpuinfo_field(std::string_view text, std::string_view name);

// The first processor of /proc/cpuinfo, proc(5). data_loss when it does not say all of that. Pure.
Result<Processor> parse_cpuinfo(std::string_view text);
Result<Processor> this_processor();

// Whether a machine that runs on `wanted` under KVM goes on on `here`: nothing when it does, else what
// differs. Its kernel has chosen its code by vendor, family, model and flags when it booted, and looks at
// none of them again; more flags do no harm.
std::string processor_difference(const Processor& wanted, const Processor& here);

}  // namespace gb::engine
