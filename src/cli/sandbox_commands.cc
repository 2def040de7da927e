// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "cli/ask.h"
#include "cli/network_commands.h"
#include "cli/table.h"

namespace gb::cli {
namespace {

constexpr std::array kSandboxes{Column{"ID", "sandboxID"}, Column{"TEMPLATE", "alias"}, Column{"STATE", "state"},
                                Column{"STARTED", "startedAt"}, Column{"ENDS", "endAt"}};
constexpr std::array kForks{Column{"ID", "sandbox.sandboxID"}, Column{"ERROR", "error.message"}};
struct SandboxOptions : AskOptions {
    std::string id;
    std::string state;  // that are listed; empty: all
    bool without_memory = false;
    int count = 1;
    int timeout_s = 300;
};

}  // namespace

void add_sandbox(CLI::App& app, Action& run) {
    CLI::App* group =
        app.add_subcommand("sandbox", "Look at sandboxes of the local server, pause, copy and end them");
    group->require_subcommand(1);
    auto options = std::make_shared<SandboxOptions>();
    auto add = [&](const char* name, const char* help, bool with_id, Action action) {
        CLI::App* command = add_asking(*group, name, help, options, run, std::move(action));
        if (with_id) command->add_option("id", options->id, "Id of the sandbox")->required();
        return command;
    };
    const auto nothing = [](auto&) { return std::string(); };
    add("list", "List sandboxes, running and paused", false, [options] {
        return ask(*options, "GET", "/v2/sandboxes" + (options->state.empty() ? "" : "?state=" + options->state),
                   [](auto& answer) { return format_table(kSandboxes, answer); });
    })
        ->add_option("--state", options->state, "Only these: running or paused  [all]")
        ->check(CLI::IsMember({"running", "paused"}));
    add("info", "What is known of a sandbox", true,
        [options] { return ask(*options, "GET", path_of("/sandboxes/{}", options->id), format_object); });
    add("isolation", "What really runs a sandbox", true, [options] {
        return ask(*options, "GET", path_of("/glovebox/sandboxes/{}/isolation", options->id), format_object);
    });
    add_network_commands(*group, run);
    add("kill", "End a sandbox", true, [options, nothing] {
        return ask(*options, "DELETE", path_of("/sandboxes/{}", options->id), nothing);
    });
    CLI::App* pause =
        add("pause", "Keep memory and files of a sandbox and end its machine", true, [options, nothing] {
            const boost::json::object body{{"memory", !options->without_memory}};
            return ask(*options, "POST", path_of("/sandboxes/{}/pause", options->id), nothing,
                       boost::json::serialize(body));
        });
    pause->add_flag("--without-memory", options->without_memory, "Keep only its files; it boots again");
    const auto with_timeout = [options](CLI::App* command) {
        command->add_option("--timeout", options->timeout_s, "How long it runs from now, in seconds")
            ->capture_default_str();
    };
    with_timeout(add("resume", "Run a paused sandbox again", true, [options] {
        const boost::json::object body{{"timeout", options->timeout_s}};
        return ask(*options, "POST", path_of("/v2/sandboxes/{}/connect", options->id), format_object,
                   boost::json::serialize(body));
    }));
    CLI::App* fork =
        add("fork", "Start copies of a running sandbox, each a sandbox of its own", true, [options] {
            const boost::json::object body{{"count", options->count}, {"timeout", options->timeout_s}};
            return ask(
                *options, "POST", path_of("/sandboxes/{}/fork", options->id),
                [](auto& answer) { return format_table(kForks, answer); }, boost::json::serialize(body));
        });
    fork->add_option("--count", options->count, "How many")->capture_default_str();
    with_timeout(fork);
}

}  // namespace gb::cli
