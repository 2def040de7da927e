// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "cli/ask.h"
#include "cli/table.h"
#include "http/message.h"

namespace gb::cli {
namespace {

namespace json = boost::json;

constexpr std::array kSnapshots{Column{"ID", "snapshotID"}, Column{"NAMES", "names"}};

struct SnapshotOptions : AskOptions {
    std::string id;
    std::string name;
};

}  // namespace

void add_snapshot(CLI::App& app, Action& run) {
    CLI::App* group = app.add_subcommand("snapshot", "Copies of running sandboxes, to start others from");
    group->require_subcommand(1);
    auto options = std::make_shared<SnapshotOptions>();

    CLI::App* create =
        add_asking(*group, "create", "Copy a running sandbox, which runs on", options, run, [options] {
            json::object body;
            if (!options->name.empty()) body["name"] = options->name;
            return ask(*options, "POST",
                       fmt::format("/sandboxes/{}/snapshots", http::percent_encode(options->id)),
                       format_object, json::serialize(body));
        });
    create->add_option("sandbox", options->id, "Id of the sandbox")->required();
    create->add_option("--name", options->name,
                       "Name for it, with an optional :tag; the same again replaces it");

    CLI::App* list = add_asking(*group, "list", "List snapshots, the newest first", options, run, [options] {
        std::string path = "/snapshots";
        if (!options->id.empty()) path += "?sandboxID=" + http::percent_encode(options->id);
        return ask(*options, "GET", path, [](auto& answer) { return format_table(kSnapshots, answer); });
    });
    list->add_option("--sandbox", options->id, "Only those of this sandbox");

    CLI::App* remove = add_asking(*group, "delete", "Delete a snapshot", options, run, [options] {
        return ask(*options, "DELETE", "/templates/" + http::percent_encode(options->id),
                   [](auto&) { return std::string(); });
    });
    remove->add_option("id", options->id, "Id or name of the snapshot")->required();
}

}  // namespace gb::cli
