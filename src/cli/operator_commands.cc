// SPDX-License-Identifier: Apache-2.0
// What the operator of a server does: teams and their plans, keys, the bill, the machine.
#include <array>
#include <optional>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "cli/ask.h"
#include "cli/table.h"
#include "cli/time_text.h"
#include "http/message.h"

namespace gb::cli {
namespace {

namespace json = boost::json;
using enum Column::Align;

constexpr std::array kTeams{Column{"SLUG", "slug"}, Column{"NAME", "name"}, Column{"PLAN", "plan"},
                            Column{"ID", "teamID"}};
constexpr std::array kKeys{Column{"ID", "id"}, Column{"NAME", "name"},
                           Column{"BEGINS", "mask.maskedValuePrefix"},
                           Column{"ENDS", "mask.maskedValueSuffix"}, Column{"CREATED", "createdAt"}};
constexpr std::array kPlans{Column{"NAME", "name"},
                            Column{"SANDBOXES", "maxSandboxes", right},
                            Column{"LIFETIME S", "maxLifetimeSeconds", right},
                            Column{"CREATES/S", "createsPerSecond", right},
                            Column{"REQUESTS/S", "requestsPerSecond", right},
                            Column{"CPU", "maxCpuCount", right},
                            Column{"MEMORY MIB", "maxMemoryMB", right},
                            Column{"DISK MIB", "maxDiskMB", right}};
constexpr std::array kNodes{Column{"ID", "id"},
                            Column{"STATUS", "status"},
                            Column{"RUNS ON", "accelerator"},
                            Column{"CPU", "cpuCount", right},
                            Column{"MEMORY MIB", "memoryMB", right},
                            Column{"AVAILABLE", "memoryAvailableMB", right},
                            Column{"DISK FREE MIB", "diskAvailableMB", right},
                            Column{"RUNNING", "sandboxCount", right},
                            Column{"PAUSED", "sandboxPausedCount", right},
                            Column{"WARM", "warm"}};
constexpr std::array kUsage{Column{"TEAM", "teamID"},
                            Column{"SANDBOX", "sandboxID"},
                            Column{"TEMPLATE", "templateID"},
                            Column{"RUNS", "runs", right},
                            Column{"SECONDS", "seconds", right},
                            Column{"VCPU S", "vcpuSeconds", right},
                            Column{"GIB S", "gibSeconds", right},
                            Column{"USD", "totalUSD", right}};

constexpr std::array kDisk{Column{"TEAM", "slug"},
                           Column{"RUNNING", "runningCount", right},
                           Column{"BYTES", "runningBytes", right},
                           Column{"PAUSED", "pausedCount", right},
                           Column{"BYTES", "pausedBytes", right},
                           Column{"SNAPSHOTS", "snapshotCount", right},
                           Column{"BYTES", "snapshotBytes", right},
                           Column{"TOTAL", "totalBytes", right}};
constexpr std::array kDiskSandboxes{Column{"SANDBOX", "sandboxID"}, Column{"TEMPLATE", "alias"},
                                    Column{"STATE", "state"}, Column{"BYTES", "bytes", right}};

struct OperatorOptions : AskOptions {
    std::string name, team, id;
    std::optional<std::string> slug, plan, start, end;
    bool csv = false;
};
using OptionsPtr = std::shared_ptr<OperatorOptions>;

CLI::App* add_group(CLI::App& app, const char* name, const char* help) {
    CLI::App* group = app.add_subcommand(name, help);
    group->require_subcommand(1);
    return group;
}

OptionsPtr operator_options() {
    auto options = std::make_shared<OperatorOptions>();
    options->as_operator = true;
    return options;
}

template <std::size_t Count>
Show table(const std::array<Column, Count>& columns) {
    return [&columns](const json::value& answer) { return format_table(columns, answer); };
}

std::string keys_path(const OperatorOptions& options) {
    return fmt::format("/glovebox/teams/{}/keys", http::percent_encode(options.team));
}

std::string show_usage(const json::value& answer) {
    if (!answer.is_object()) return "";
    const json::value* rows = answer.get_object().if_contains("sandboxes");
    return format_table(kUsage, rows != nullptr ? *rows : json::value()) +
           fmt::format("from {} to {}: {} s, {} USD\n", field_text(answer, "start"),
                       field_text(answer, "end"), field_text(answer, "total.seconds"),
                       field_text(answer, "total.totalUSD"));
}

int usage(const OperatorOptions& options) {
    std::string query;
    auto add = [&](const char* name, const std::string& value) {
        query += (query.empty() ? "?" : "&") + std::string(name) + "=" + http::percent_encode(value);
    };
    for (auto [name, text] : {std::pair("start", &options.start), std::pair("end", &options.end)}) {
        if (!*text) continue;
        auto seconds = parse_time_text(**text);
        if (!seconds) return complain(seconds.error());
        add(name, std::to_string(*seconds));
    }
    if (!options.team.empty()) add("team", options.team);
    if (!options.csv) return ask(options, "GET", "/glovebox/usage/all" + query, show_usage);
    auto server = server_of(options);
    if (!server) return complain(server.error());
    auto text = call_api_text(*server, "GET", "/glovebox/usage/all.csv" + query);
    if (!text) return complain(text.error());
    fmt::print("{}", *text);
    return 0;
}

int disk(const OperatorOptions& options) {
    if (options.team.empty()) return ask(options, "GET", "/admin/disk", table(kDisk));
    return ask(
        options, "GET", "/admin/disk?team=" + http::percent_encode(options.team),
        [](const json::value& answer) {
            std::string out = format_table(kDisk, answer);
            if (!answer.is_array()) return out;
            for (const json::value& team : answer.get_array())
                if (const json::object* row = team.if_object(); row != nullptr && row->contains("largest"))
                    out += "\nits largest sandboxes\n" + format_table(kDiskSandboxes, row->at("largest"));
            return out;
        });
}

void add_teams(CLI::App& app, Action& run) {
    CLI::App* group = add_group(app, "team", "Teams of the local server: who may use it, and how much");
    OptionsPtr options = operator_options();
    add_asking(*group, "list", "List teams", options, run,
               [options] { return ask(*options, "GET", "/glovebox/teams", table(kTeams)); });
    CLI::App* create = add_asking(*group, "create", "Add a team", options, run, [options] {
        json::object body{{"name", options->name}};
        if (options->slug) body["slug"] = *options->slug;
        if (options->plan) body["plan"] = *options->plan;
        return ask(*options, "POST", "/glovebox/teams", format_object, json::serialize(body));
    });
    create->add_option("name", options->name, "Name for people")->required();
    create->add_option("--slug", options->slug, "Name for commands, of a-z, 0-9, - and _  [the name]");
    create->add_option("--plan", options->plan, "One of `glovebox plan list`  [hobby]");
    CLI::App* set_plan =
        add_asking(*group, "set-plan", "Put a team on another plan", options, run, [options] {
            return ask(*options, "PATCH", "/glovebox/teams/" + http::percent_encode(options->team),
                       format_object, json::serialize(json::object{{"plan", *options->plan}}));
        });
    set_plan->add_option("team", options->team, "Slug or id of the team")->required();
    set_plan->add_option("plan", options->plan, "One of `glovebox plan list`")->required();
}

void add_keys(CLI::App& app, Action& run) {
    CLI::App* group = add_group(app, "key", "API keys of a team");
    OptionsPtr options = operator_options();
    auto add = [&](const char* name, const char* help, Action action) {
        CLI::App* command = add_asking(*group, name, help, options, run, std::move(action));
        command->add_option("--team", options->team, "Slug or id of the team")->required();
        return command;
    };
    add("list", "List keys; their text is known to nobody but their owner",
        [options] { return ask(*options, "GET", keys_path(*options), table(kKeys)); });
    add("create", "Make a key; its text is shown this once",
        [options] {
            return ask(
                *options, "POST", keys_path(*options),
                [](const json::value& answer) {
                    return fmt::format("key  {}\nid   {}\n", field_text(answer, "key"),
                                       field_text(answer, "id"));
                },
                json::serialize(json::object{{"name", options->name}}));
        })
        ->add_option("name", options->name, "What the key is for")
        ->required();
    add("revoke", "Make a key useless, at once",
        [options] {
            return ask(*options, "DELETE", keys_path(*options) + "/" + http::percent_encode(options->id),
                       [](const json::value&) { return std::string(); });
        })
        ->add_option("id", options->id, "Id of the key")
        ->required();
}

}  // namespace

void add_operator(CLI::App& app, Action& run) {
    add_teams(app, run);
    add_keys(app, run);
    OptionsPtr options = operator_options();
    CLI::App* bill = add_asking(app, "usage", "What was used and what it costs, by sandbox", options, run,
                                [options] { return usage(*options); });
    bill->add_option("--team", options->team, "Slug or id of a team  [all]");
    bill->add_option("--start", options->start,
                     "Unix seconds, 2026-01-31 or RFC 3339  [30 days before the end]");
    bill->add_option("--end", options->end, "The same  [now]");
    bill->add_flag("--csv", options->csv, "As CSV, with dollars to the billionth")->excludes("--json");
    add_asking(app, "disk", "What sandboxes and snapshots take of the disk, by team", options, run, [options] {
        return disk(*options);
    })->add_option("--team", options->team, "Slug or id of a team, whose largest sandboxes are named  [all]");
    add_asking(*add_group(app, "plan", "Plans of the configuration"), "list", "List plans and their limits",
               options, run, [options] { return ask(*options, "GET", "/glovebox/plans", table(kPlans)); });
    add_asking(*add_group(app, "node", "Machines that run sandboxes"), "list",
               "List machines and what is free on them", options, run,
               [options] { return ask(*options, "GET", "/nodes", table(kNodes)); });
}

}  // namespace gb::cli
