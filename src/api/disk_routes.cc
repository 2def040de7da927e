// SPDX-License-Identifier: Apache-2.0
// What the sandboxes and snapshots of teams take of the disk: of all teams for the operator, of its own for a team. Ours.
#include <algorithm>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "api/api.h"

namespace gb::api {
namespace {

namespace json = boost::json;

// A team may ask as often as its plan lets it; the disk is looked at less often.
constexpr std::chrono::seconds kTeamAge{2};

json::object disk_json(const TeamDisk& row) {
    return {{"teamID", row.team.id},
            {"slug", row.team.slug},
            {"runningCount", row.running},
            {"runningBytes", row.running_bytes},
            {"pausedCount", row.paused},
            {"pausedBytes", row.paused_bytes},
            {"snapshotCount", row.snapshots},
            {"snapshotBytes", row.snapshot_bytes},
            {"totalBytes", row.bytes()}};
}

json::object with_largest(const TeamDisk& row) {
    json::array largest;
    for (const SandboxDisk& sandbox : row.largest)
        largest.push_back(json::object{{"sandboxID", sandbox.id},
                                       {"alias", sandbox.template_name},
                                       {"state", sandbox.running ? "running" : "paused"},
                                       {"bytes", sandbox.bytes}});
    json::object out = disk_json(row);
    out["largest"] = std::move(largest);
    return out;
}

// An array of all teams, or of the one that is asked for, with its largest sandboxes.
Handler all(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(DiskUsage::Rows rows, co_await services.disk.read(std::chrono::milliseconds(0)));
        const std::string* wanted = call.exchange.target.find("team");
        json::array out;
        for (const TeamDisk& row : *rows) {
            if (wanted == nullptr)
                out.push_back(disk_json(row));
            else if (row.team.id == *wanted || row.team.slug == *wanted)
                out.push_back(with_largest(row));
        }
        if (wanted != nullptr && out.empty())
            co_return fail(ErrorCode::not_found, fmt::format("no team '{}'", *wanted));
        co_return co_await call.exchange.response.send_json(200, json::serialize(out));
    };
}

Handler own(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(DiskUsage::Rows rows, co_await services.disk.read(kTeamAge));
        auto row =
            std::ranges::find_if(*rows, [&](const TeamDisk& disk) { return disk.team.id == call.team.id; });
        // A team that was added a moment ago has nothing yet.
        co_return co_await call.exchange.response.send_json(
            200, json::serialize(with_largest(row == rows->end() ? TeamDisk{.team = call.team} : *row)));
    };
}

}  // namespace

void add_disk_routes(Router& router, Services services) {
    router.add("GET", "/disk", own(services));
    router.add("GET", "/admin/disk", all(services), Access::admin);
}

}  // namespace gb::api
