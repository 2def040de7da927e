// SPDX-License-Identifier: Apache-2.0
#include "control/disk_use.h"

#include <algorithm>
#include <unordered_map>

#include <boost/asio/use_awaitable.hpp>

#include "base/clock.h"
#include "base/error_tuple.h"
#include "base/offload.h"
#include "control/listing.h"

namespace gb {

namespace asio = boost::asio;

std::vector<TeamDisk> disk_by_team(std::span<const Team> teams, std::span<const SandboxRecord> sandboxes,
                                   const TemplateRows& templates, std::span<const DiskUse> uses) {
    std::vector<TeamDisk> out;
    std::unordered_map<std::string, std::size_t> places;
    for (const Team& team : teams) {
        places.emplace(team.id, out.size());
        out.push_back({.team = team});
    }
    std::unordered_map<std::string, std::uint64_t> bytes, of_builds;
    for (const DiskUse& use : uses) (use.kind == DiskKind::sandbox ? bytes : of_builds)[use.id] += use.bytes;
    std::unordered_map<std::string, std::string> owners;  // teams, by template
    for (const TemplateRecord& row : templates.templates) owners.emplace(row.id, row.team_id);
    for (const BuildRecord& build : templates.builds) {
        auto place = places.find(owners[build.template_id]);
        if (place == places.end()) continue;
        TeamDisk& row = out[place->second];
        ++row.snapshots;
        if (auto found = of_builds.find(build.id); found != of_builds.end()) row.snapshot_bytes += found->second;
    }
    for (const SandboxRecord& sandbox : sandboxes) {
        auto place = places.find(sandbox.team_id);
        const Shown shown = shown_as(sandbox.state);
        if (place == places.end() || shown == Shown::hidden) continue;
        auto found = bytes.find(sandbox.id);
        const std::uint64_t taken = found == bytes.end() ? 0 : found->second;
        TeamDisk& row = out[place->second];
        const bool running = shown == Shown::running;
        ++(running ? row.running : row.paused);
        (running ? row.running_bytes : row.paused_bytes) += taken;
        row.largest.push_back({sandbox.id, sandbox.template_name, running, taken});
    }
    for (TeamDisk& row : out) {
        std::ranges::sort(row.largest, [](const SandboxDisk& a, const SandboxDisk& b) {
            return a.bytes != b.bytes ? a.bytes > b.bytes : a.id < b.id;
        });
        if (row.largest.size() > kLargestSandboxes) row.largest.resize(kLargestSandboxes);
    }
    return out;
}

namespace {

Result<std::vector<TeamDisk>> look(Store& store, Node& node) {
    GB_TRY_ASSIGN(auto teams, store.teams());
    GB_TRY_ASSIGN(auto sandboxes, store.sandboxes());
    GB_TRY_ASSIGN(auto templates, store.templates());
    GB_TRY_ASSIGN(auto uses, node.disk_use());
    return disk_by_team(teams, sandboxes, templates, uses);
}

}  // namespace

DiskUsage::DiskUsage(asio::any_io_executor executor, asio::thread_pool& pool, Store& store, Node& node)
    : pool_(pool),
      store_(store),
      node_(node),
      done_(std::move(executor), asio::steady_timer::time_point::max()) {}

asio::awaitable<Result<DiskUsage::Rows>> DiskUsage::read(std::chrono::milliseconds max_age) {
    const std::int64_t oldest = monotonic_ms() - max_age.count();
    for (;;) {
        if (rows_ && begun_ms_ >= oldest) co_return rows_;
        if (!looking_) break;
        co_await done_.async_wait(kErrorTuple);
    }
    looking_ = true;
    const std::int64_t begun = monotonic_ms();
    auto rows = co_await offload(pool_, [this] { return look(store_, node_); });
    looking_ = false;
    if (rows) {
        rows_ = std::make_shared<const std::vector<TeamDisk>>(*std::move(rows));
        begun_ms_ = begun;
    }
    done_.cancel();
    if (!rows) co_return std::unexpected(rows.error());
    co_return rows_;
}

}  // namespace gb
