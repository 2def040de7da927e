// SPDX-License-Identifier: Apache-2.0
// What was used and what it costs: processors and memory as they were given, while a sandbox ran (contract 7.11).
// Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control/plans.h"
#include "store/records.h"

namespace gb {

struct Usage {
    std::int64_t run_ms = 0;
    std::int64_t vcpu_ms = 0;
    std::int64_t mib_ms = 0;
    int runs = 0;

    Usage& operator+=(const Usage& other);
    [[nodiscard]] double vcpu_seconds() const { return static_cast<double>(vcpu_ms) / 1000; }
    [[nodiscard]] double gib_seconds() const { return static_cast<double>(mib_ms) / 1000 / 1024; }
    // Billionths of a dollar, rounded once.
    [[nodiscard]] std::int64_t vcpu_cost_nano(const Prices& prices) const;
    [[nodiscard]] std::int64_t memory_cost_nano(const Prices& prices) const;
};

// The part of a run in [from, to); a run that goes on lasts until `now`.
Usage usage_of(const SandboxRun& run, std::int64_t from_ms, std::int64_t to_ms, std::int64_t now_ms);

struct SandboxUsageRow {
    std::string team_id, sandbox_id, template_id;
    Usage usage;
};
// One row a sandbox, in the order of the runs; those without use in the range are left out.
std::vector<SandboxUsageRow> usage_by_sandbox(std::span<const SandboxRun> runs, std::int64_t from_ms, std::int64_t to_ms,
                                              std::int64_t now_ms);

std::string dollars(std::int64_t nano);  // "0.3024": at least four decimals, no more than needed
// With a header line; RFC 4180.
std::string usage_csv(std::span<const SandboxUsageRow> rows, const Prices& prices);

}  // namespace gb
