// SPDX-License-Identifier: Apache-2.0
#include "control/metering.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

namespace gb {
namespace {

std::int64_t rounded(__int128 numerator, std::int64_t denominator) {
    return static_cast<std::int64_t>((numerator + denominator / 2) / denominator);
}

}  // namespace

Usage& Usage::operator+=(const Usage& other) {
    run_ms += other.run_ms;
    vcpu_ms += other.vcpu_ms;
    mib_ms += other.mib_ms;
    runs += other.runs;
    return *this;
}

std::int64_t Usage::vcpu_cost_nano(const Prices& prices) const {
    return rounded(__int128{vcpu_ms} * prices.vcpu_second_nano, 1000);
}

std::int64_t Usage::memory_cost_nano(const Prices& prices) const {
    return rounded(__int128{mib_ms} * prices.gib_second_nano, std::int64_t{1000} * 1024);
}

Usage usage_of(const SandboxRun& run, std::int64_t from_ms, std::int64_t to_ms, std::int64_t now_ms) {
    const std::int64_t start = std::max(run.started_ms, from_ms);
    const std::int64_t end = std::min(run.ended_ms != 0 ? run.ended_ms : now_ms, to_ms);
    if (end <= start) return {};
    const std::int64_t ms = end - start;
    return {ms, ms * run.cpu_count, ms * run.memory_mib, 1};
}

std::vector<SandboxUsageRow> usage_by_sandbox(std::span<const SandboxRun> runs, std::int64_t from_ms, std::int64_t to_ms,
                                              std::int64_t now_ms) {
    std::vector<SandboxUsageRow> out;
    std::unordered_map<std::string, std::size_t> where;
    for (const SandboxRun& run : runs) {
        const Usage usage = usage_of(run, from_ms, to_ms, now_ms);
        if (usage.run_ms == 0) continue;
        auto [found, fresh] = where.try_emplace(run.sandbox_id, out.size());
        if (fresh) out.push_back({run.team_id, run.sandbox_id, run.template_id, {}});
        out[found->second].usage += usage;
    }
    return out;
}

std::string dollars(std::int64_t nano) {
    std::string text = fmt::format("{}.{:09}", nano / 1'000'000'000, nano % 1'000'000'000);
    while (text.back() == '0' && text.size() - text.find('.') > 5) text.pop_back();
    return text;
}

std::string usage_csv(std::span<const SandboxUsageRow> rows, const Prices& prices) {
    // Ids are made here of [a-z0-9-], numbers need no quotes.
    std::string out =
        "team_id,sandbox_id,template_id,runs,seconds,vcpu_seconds,gib_seconds,vcpu_usd,memory_usd,total_usd\r\n";
    for (const SandboxUsageRow& row : rows) {
        const Usage& u = row.usage;
        const std::int64_t cpu = u.vcpu_cost_nano(prices), memory = u.memory_cost_nano(prices);
        out += fmt::format("{},{},{},{},{:.3f},{:.3f},{:.3f},{},{},{}\r\n", row.team_id, row.sandbox_id,
                           row.template_id, u.runs, static_cast<double>(u.run_ms) / 1000, u.vcpu_seconds(),
                           u.gib_seconds(), dollars(cpu), dollars(memory), dollars(cpu + memory));
    }
    return out;
}

}  // namespace gb
