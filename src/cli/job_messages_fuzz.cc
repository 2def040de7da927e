// SPDX-License-Identifier: Apache-2.0
// What a guest says about a job.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cli/job_script.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace gb::cli;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (auto end = parse_job_end(text); end && (end->exit_code < 0 || end->exit_code > 255)) std::abort();
    if (auto event = parse_agent_event(text); event && event->exit_code && *event->exit_code < -1)
        std::abort();
    if (auto upload = parse_upload(text); upload && upload->path.empty()) std::abort();
    return 0;
}
