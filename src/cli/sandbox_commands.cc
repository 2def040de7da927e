#include <array>

#include <fmt/format.h>

#include "cli/ask.h"
#include "cli/table.h"
#include "http/message.h"

namespace gb::cli {
namespace {

constexpr std::array kSandboxes{Column{"ID", "sandboxID"}, Column{"TEMPLATE", "alias"},
                                Column{"STARTED", "startedAt"}, Column{"ENDS", "endAt"}};
constexpr std::array kDecisions{Column{"TIME", "time"},
                                Column{"WHAT", "verdict"},
                                Column{"PROTO", "protocol"},
                                Column{"ADDRESS", "address"},
                                Column{"PORT", "port", Column::Align::right},
                                Column{"RULE", "rule"}};

struct Options : AskOptions {
    std::string id;
};

std::string path_of(const char* format, const std::string& id) {
    return fmt::format(fmt::runtime(format), http::percent_encode(id));
}

}  // namespace

void add_sandbox(CLI::App& app, Action& run) {
    CLI::App* group = app.add_subcommand("sandbox", "Look at sandboxes of the local server and end them");
    group->require_subcommand(1);
    auto options = std::make_shared<Options>();
    auto add = [&](const char* name, const char* help, bool with_id, Action action) {
        CLI::App* command = add_asking(*group, name, help, options, run, std::move(action));
        if (with_id) command->add_option("id", options->id, "Id of the sandbox")->required();
    };
    add("list", "List running sandboxes", false, [options] {
        return ask(*options, "GET", "/v2/sandboxes",
                   [](auto& answer) { return format_table(kSandboxes, answer); });
    });
    add("info", "What is known of a sandbox", true,
        [options] { return ask(*options, "GET", path_of("/sandboxes/{}", options->id), format_object); });
    add("isolation", "What really runs a sandbox", true, [options] {
        return ask(*options, "GET", path_of("/glovebox/sandboxes/{}/isolation", options->id), format_object);
    });
    add("egress", "Where a sandbox tried to go, and what was decided", true, [options] {
        return ask(*options, "GET", path_of("/glovebox/sandboxes/{}/egress", options->id),
                   [](auto& answer) { return format_table(kDecisions, answer); });
    });
    add("kill", "End a sandbox", true, [options] {
        return ask(*options, "DELETE", path_of("/sandboxes/{}", options->id),
                   [](auto&) { return std::string(); });
    });
}

}  // namespace gb::cli
