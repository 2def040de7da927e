// SPDX-License-Identifier: Apache-2.0
// What any guest may answer when it is asked for its telemetry.
#include <cstdint>
#include <cstdlib>

#include "node/telemetry_message.h"

namespace {

void check(std::string_view body, std::uint64_t after) {
    const auto telemetry = gb::parse_telemetry(body, after);
    if (!telemetry) return;
    if (telemetry->metrics.mem_used < 0 || telemetry->metrics.disk_total < 0) std::abort();
    std::uint64_t last = after;
    for (const gb::GuestLogEntry& entry : telemetry->entries) {
        if (entry.sequence <= last || entry.time_ms < 0 || entry.message.size() > 4096) std::abort();
        last = entry.sequence;
        if (entry.fields.at("logger") == "sandbox") std::abort();
        for (const auto& [name, value] : entry.fields)
            if (name.empty() || value.find('\0') != std::string::npos) std::abort();
    }
    if (telemetry->next != last || (telemetry->more && telemetry->entries.empty())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    check(text, 0);
    // Past the counters, which are hard to guess, to the entries.
    constexpr std::string_view kHead =
        R"({"metrics":{"mem_total":1,"mem_used":1,"mem_cache":1,"disk_used":1,"disk_total":1},)"
        R"("cpu_busy_ticks":1,"cpu_total_ticks":1,"dropped":0,"more":false,"next":1,"entries":[)";
    check(std::string(kHead) + text + "]}", 0);
    check(std::string(kHead) +
              R"({"sequence":1,"time":1,"level":"info","message":"x","fields":{"logger":"process",)" + text +
              "}}]}",
          0);
    return 0;
}
