// SPDX-License-Identifier: Apache-2.0
// A sandbox's network: what is in force, replacing it, and what was decided.
#include "cli/network_commands.h"

#include <cstdio>
#include <iostream>
#include <iterator>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/file.h"
#include "cli/decision_table.h"
#include "cli/table.h"

namespace gb::cli {
namespace {

namespace json = boost::json;

struct NetworkCommand : AskOptions {
    std::string id, set;
};

struct EgressCommand : AskOptions {
    std::string id, verdict;
    bool follow = false;
    std::size_t limit = 1000;
};

int show_network(const NetworkCommand& options) {
    const auto nothing = [](const json::value&) { return std::string(); };
    if (options.set.empty())
        return ask(options, "GET", path_of("/glovebox/sandboxes/{}/network", options.id), format_object);
    Result<std::string> body = options.set == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {})
                                                  : read_file(options.set);
    if (!body) return complain(body.error());
    return ask(options, "PUT", path_of("/sandboxes/{}/network", options.id), nothing, *body);
}

std::string query_of(const EgressCommand& options, bool follow) {
    std::string out = path_of("/glovebox/sandboxes/{}/egress", options.id);
    out += follow ? "?follow=true" : fmt::format("?limit={}", options.limit);
    if (!options.verdict.empty()) out += "&verdict=" + options.verdict;
    return out;
}

int follow(const EgressCommand& options) {
    auto server = server_of(options);
    if (!server) return complain(server.error());
    if (!options.json) fmt::print("{}", decision_heading());
    std::fflush(stdout);
    Status done = stream_api(*server, query_of(options, true), [&](std::string_view line) {
        if (line.empty()) return;
        boost::system::error_code ec;
        const json::value value = json::parse(json::string_view(line.data(), line.size()), ec);
        if (options.json || ec)
            fmt::print("{}\n", line);
        else
            fmt::print("{}", format_decision(value));
        std::fflush(stdout);
    });
    return done ? 0 : complain(done.error());
}

int show_decisions(const EgressCommand& options) {
    if (options.follow) return follow(options);
    return ask(options, "GET", query_of(options, false), [](const json::value& answer) {
        return answer.is_array() ? format_decisions(merge_ends(answer.get_array())) : std::string();
    });
}

}  // namespace

void add_network_commands(CLI::App& group, Action& run) {
    auto network = std::make_shared<NetworkCommand>();
    CLI::App* show = add_asking(group, "network", "What a sandbox may reach now, or replace it", network, run,
                                [network] { return show_network(*network); });
    show->add_option("id", network->id, "Id of the sandbox")->required();
    show->add_option("--set", network->set,
                     "File with the new rules as JSON, in place of all that there are; - is standard input");

    auto egress = std::make_shared<EgressCommand>();
    CLI::App* decisions = add_asking(
        group, "egress", "Where a sandbox tried to go, and what was decided; also of one that is gone",
        egress, run, [egress] { return show_decisions(*egress); });
    decisions->add_option("id", egress->id, "Id of the sandbox")->required();
    CLI::Option* follows =
        decisions->add_flag("--follow", egress->follow, "From the beginning on, and go on until it is gone");
    decisions->add_option("--verdict", egress->verdict, "Only these")
        ->check(CLI::IsMember({"allow", "deny", "end"}));
    decisions->add_option("--limit", egress->limit, "The last so many lines")
        ->check(CLI::Range(1, 100'000))
        ->capture_default_str()
        ->excludes(follows);
}

}  // namespace gb::cli
