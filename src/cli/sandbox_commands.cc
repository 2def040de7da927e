#include <boost/json.hpp>
#include <fmt/format.h>

#include "cli/api_client.h"
#include "cli/commands.h"
#include "cli/paths.h"
#include "http/message.h"

namespace gb::cli {
namespace {

namespace json = boost::json;

struct Options {
    NodeOptions node = default_node_options();
    bool data_dir_given = false;
    std::string id;
    bool json = false;
};

std::string text_of(const json::value& object, const char* name) {
    const json::value* value = object.is_object() ? object.get_object().if_contains(name) : nullptr;
    if (value == nullptr || value->is_null()) return "-";
    return value->is_string() ? std::string(value->get_string()) : json::serialize(*value);
}

// Calls the server and prints its answer: as JSON, or as the command likes it.
int ask(const Options& options, const std::string& method, const std::string& path,
        const std::function<void(const json::value&)>& show) {
    auto server = find_server(options.node, options.data_dir_given);
    if (!server) return complain(server.error());
    auto answer = call_api(*server, method, path);
    if (!answer) return complain(answer.error());
    if (options.json)
        fmt::print("{}\n", json::serialize(*answer));
    else
        show(*answer);
    return 0;
}

void show_list(const json::value& answer) {
    fmt::print("{:<22}{:<22}{:<26}{:<26}\n", "ID", "TEMPLATE", "STARTED", "ENDS");
    if (!answer.is_array()) return;
    for (const json::value& item : answer.get_array())
        fmt::print("{:<22}{:<22}{:<26}{:<26}\n", text_of(item, "sandboxID"), text_of(item, "alias"),
                   text_of(item, "startedAt"), text_of(item, "endAt"));
}

void show_egress(const json::value& answer) {
    fmt::print("{:<26}{:<7}{:<7}{:<24}{:>6}  {}\n", "TIME", "WHAT", "PROTO", "ADDRESS", "PORT", "RULE");
    if (!answer.is_array()) return;
    for (const json::value& item : answer.get_array())
        fmt::print("{:<26}{:<7}{:<7}{:<24}{:>6}  {}\n", text_of(item, "time"), text_of(item, "verdict"),
                   text_of(item, "protocol"), text_of(item, "address"), text_of(item, "port"), text_of(item, "rule"));
}

void show_object(const json::value& answer) {
    if (!answer.is_object()) return;
    for (const auto& item : answer.get_object())
        fmt::print("{:<20}{}\n", std::string_view(item.key()), text_of(answer, std::string(item.key()).c_str()));
}

std::string path_of(const char* format, const std::string& id) {
    return fmt::format(fmt::runtime(format), http::percent_encode(id));
}

}  // namespace

void add_sandbox(CLI::App& app, Action& run) {
    CLI::App* group = app.add_subcommand("sandbox", "Look at sandboxes of the local server and end them");
    group->require_subcommand(1);
    auto options = std::make_shared<Options>();
    auto add = [&](const char* name, const char* help, bool with_id, Action action) {
        CLI::App* command = group->add_subcommand(name, help);
        add_data_dir(*command, options->node);
        command->add_flag("--json", options->json, "As JSON");
        if (with_id) command->add_option("id", options->id, "Id of the sandbox")->required();
        command->callback([&run, action, command, options] {
            options->data_dir_given = command->count("--data-dir") > 0;
            run = action;
        });
    };
    add("list", "List running sandboxes", false,
        [options] { return ask(*options, "GET", "/v2/sandboxes", show_list); });
    add("info", "What is known of a sandbox", true,
        [options] { return ask(*options, "GET", path_of("/sandboxes/{}", options->id), show_object); });
    add("isolation", "What really runs a sandbox", true, [options] {
        return ask(*options, "GET", path_of("/glovebox/sandboxes/{}/isolation", options->id), show_object);
    });
    add("egress", "Where a sandbox tried to go, and what was decided", true, [options] {
        return ask(*options, "GET", path_of("/glovebox/sandboxes/{}/egress", options->id), show_egress);
    });
    add("kill", "End a sandbox", true, [options] {
        return ask(*options, "DELETE", path_of("/sandboxes/{}", options->id), [](const json::value&) {});
    });
}

}  // namespace gb::cli
