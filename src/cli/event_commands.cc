// SPDX-License-Identifier: Apache-2.0
// What happened to the sandboxes of a team, and webhooks that are told of it.
#include <array>
#include <cstdio>
#include <iostream>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/ask.h"
#include "cli/table.h"
#include "control/events.h"
#include "http/message.h"

namespace gb::cli {
namespace {

namespace json = boost::json;

constexpr std::array kEvents{Column{"TIME", "timestamp"}, Column{"TYPE", "type"},
                             Column{"SANDBOX", "sandboxId"}, Column{"DATA", "eventData"}};
constexpr std::array kDeliveries{Column{"EVENT", "eventType"}, Column{"SANDBOX", "sandboxId"},
                                 Column{"STATE", "state"}, Column{"ATTEMPTS", "attempts", Column::Align::right},
                                 Column{"NEXT ATTEMPT", "nextAttemptAt"}, Column{"LAST ERROR", "lastError"}};
constexpr std::array kWebhooks{Column{"ID", "id"}, Column{"NAME", "name"}, Column{"ENABLED", "enabled"},
                               Column{"URL", "url"}, Column{"EVENTS", "events"}};

struct EventOptions : AskOptions {
    std::string id, name, url;
    std::string secret_file = "-";
    std::vector<std::string> events;
    int limit = 20;
};

// "created" is short for "sandbox.lifecycle.created"; what is unknown is for the server to refuse.
std::string full_type(const std::string& text) {
    return text.find('.') == std::string::npos ? "sandbox.lifecycle." + text : text;
}

// From a file or standard input: a command line is seen by everybody on the machine. One line end is not part
// of it.
Result<std::string> read_secret(const std::string& file) {
    std::string out;
    if (file == "-") {
        if (::isatty(STDIN_FILENO) != 0) fmt::print(stderr, "Secret for the signatures, then Enter: ");
        std::getline(std::cin, out);
    } else {
        GB_TRY_ASSIGN(out, read_file(file));
        if (out.ends_with('\n')) out.pop_back();
    }
    if (out.ends_with('\r')) out.pop_back();
    if (out.empty())
        return fail(ErrorCode::invalid_argument,
                    "the secret for the signatures is empty: write it to standard input or name a file with "
                    "--secret-file");
    return out;
}

int list_events(const EventOptions& options) {
    std::string path = "/events/sandboxes";
    if (!options.id.empty()) path += "/" + http::percent_encode(options.id);
    path += fmt::format("?limit={}", options.limit);
    for (const std::string& type : options.events) path += "&types=" + http::percent_encode(full_type(type));
    return ask(options, "GET", path, [](const json::value& answer) { return format_table(kEvents, answer); });
}

int create_webhook(const EventOptions& options) {
    auto secret = read_secret(options.secret_file);
    if (!secret) return complain(secret.error());
    json::array events;
    for (const std::string& type : options.events) events.emplace_back(full_type(type));
    if (events.empty())
        for (std::string_view type : kEventTypes) events.emplace_back(type);
    json::object body{
        {"name", options.name}, {"url", options.url}, {"enabled", true}, {"signatureSecret", *secret}};
    body["events"] = std::move(events);
    return ask(options, "POST", "/events/webhooks", format_object, json::serialize(body));
}

}  // namespace

void add_events(CLI::App& app, Action& run) {
    auto options = std::make_shared<EventOptions>();
    CLI::App* events = app.add_subcommand("event", "What happened to sandboxes");
    events->require_subcommand(1);
    CLI::App* list = add_asking(*events, "list", "List events, the newest first", options, run,
                                [options] { return list_events(*options); });
    list->add_option("--sandbox", options->id, "Of one sandbox  [all of the team]");
    list->add_option("--type", options->events, "Such as created or killed  [all]");
    list->add_option("--limit", options->limit, "At most so many")
        ->check(CLI::Range(1, 100))
        ->capture_default_str();

    CLI::App* webhooks = app.add_subcommand("webhook", "Who is told what happens to sandboxes");
    webhooks->require_subcommand(1);
    add_asking(*webhooks, "list", "List webhooks", options, run, [options] {
        return ask(*options, "GET", "/events/webhooks",
                   [](const json::value& answer) { return format_table(kWebhooks, answer); });
    });
    CLI::App* create = add_asking(*webhooks, "create", "Add a webhook", options, run,
                                  [options] { return create_webhook(*options); });
    create->add_option("--name", options->name, "Name for people")->required();
    create->add_option("--url", options->url, "Where events are sent: http or https")->required();
    create->add_option("--event", options->events, "Such as created or killed  [all]");
    create
        ->add_option("--secret-file", options->secret_file,
                     "File with the secret that signs deliveries; - is standard input")
        ->capture_default_str();
    CLI::App* deliveries =
        add_asking(*webhooks, "deliveries", "What is on its way to a webhook or was given up, and why", options, run,
                   [options] {
                       return ask(*options, "GET",
                                  "/events/webhooks/" + http::percent_encode(options->id) + "/deliveries",
                                  [](const json::value& answer) { return format_table(kDeliveries, answer); });
                   });
    deliveries->add_option("id", options->id, "Id of the webhook")->required();
    CLI::App* remove = add_asking(
        *webhooks, "delete", "Remove a webhook, and what is on its way to it", options, run, [options] {
            return ask(*options, "DELETE", "/events/webhooks/" + http::percent_encode(options->id),
                       [](const json::value&) { return std::string(); });
        });
    remove->add_option("id", options->id, "Id of the webhook")->required();
}

}  // namespace gb::cli
