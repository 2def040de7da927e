// SPDX-License-Identifier: Apache-2.0
// glovebox demo: the main job, from nothing to evidence. An agent's script that nobody has read reconciles
// invoices in a machine without network.
#include <ctime>

#include <boost/json.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/demo_job.h"
#include "cli/demo_stage.h"
#include "cli/paths.h"
#include "cli/prepare_template.h"
#include "node/template_fit.h"

namespace gb::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr const char* kTemplate = "base";  // the smallest; the script needs nothing but Python

struct DemoOptions {
    NodeOptions node = default_node_options();
    fs::path output;
    bool json = false;
};

// The folder that is named, or one of its own below ./demo-output.
Result<DemoReport> open_report(const DemoOptions& options) {
    const auto print = options.json ? DemoReport::Print::nothing : DemoReport::Print::text;
    std::error_code ec;
    fs::path folder = fs::absolute(options.output, ec);
    if (options.output.empty()) {
        const std::time_t now = std::time(nullptr);
        tm local{};
        ::localtime_r(&now, &local);
        const fs::path named = fs::current_path(ec) / "demo-output" / fmt::format("{:%Y%m%d-%H%M%S}", local);
        folder = named;
        for (int n = 2; fs::exists(folder, ec); ++n) folder = fmt::format("{}-{}", named.string(), n);
    }
    auto report = DemoReport::open(folder, print);
    if (!report)
        return std::unexpected(
            report.error().with("the demo's output has no place (name a folder with --output)"));
    return report;
}

// Sees that there is a template that this machine can start, and makes it where there is none.
Result<std::string> ensure_template(const NodeOptions& node) {
    GB_TRY_ASSIGN(const HostFacts host, look_at_host());
    TemplateStore store(node.templates());
    auto found = store.find(kTemplate);
    if (found) {
        const Status fits = check_fit(found->manifest, host);
        if (fits) return found->manifest.info.build_id;
        fmt::print(stderr, "demo: {}\n", fits.error().message);
    } else if (found.error().code != ErrorCode::not_found) {
        return std::unexpected(found.error());
    }
    fmt::print(stderr, "demo: template {} is made first, which takes some minutes, once\n", kTemplate);
    TemplateBuilder builder(node);
    auto prepared = prepare_template(builder, kTemplate, Reuse::when_unchanged);
    if (!prepared)
        return std::unexpected(
            prepared.error().with("template base cannot be made (`glovebox doctor` checks this machine)"));
    return prepared->stored.manifest.info.build_id;
}

Status keep_input(DemoReport& report, const DemoData& data) {
    const fs::path script = examples_dir() / "invoice-reconciliation" / kDemoScript;
    auto text = read_file(script);
    if (!text)
        return std::unexpected(
            text.error().with("the script that nobody has read is installed with the program"));
    GB_TRY(report.keep(kDemoScript, *text));
    GB_TRY(report.keep("invoices.csv", data.invoices));
    return report.keep("ledger.csv", data.ledger);
}

Status demo(const DemoOptions& options, std::optional<DemoReport>& kept) {
    if (::geteuid() != 0)
        return fail(ErrorCode::permission_denied,
                    "run it as root (sudo glovebox demo): machines and network namespaces need it");
    GB_TRY_ASSIGN(kept, open_report(options));
    DemoReport& report = *kept;
    const DemoData data = make_demo_data();
    GB_TRY(keep_input(report, data));
    GB_TRY_ASSIGN(const std::string build, ensure_template(options.node));
    report.set("templateBuild", json::value(build));
    report.say(
        "Glovebox demo: an agent's script that nobody has read reconciles 200 invoices in a closed machine");
    auto staged = stage_demo(options.node.templates(), data, report);
    if (!staged && staged.error().code != ErrorCode::canceled)
        return std::unexpected(
            staged.error().with("the demo cannot go on (`glovebox doctor` checks this machine)"));
    GB_TRY(staged);
    GB_TRY(report.keep("summary.json", json::serialize(report.summary()) + "\n"));
    report.say(fmt::format("\n{}. Everything is kept in {}", report.failed() ? "FAILED" : "Done",
                           report.folder().string()));
    return {};
}

int run_demo(const DemoOptions& options) {
    std::optional<DemoReport> report;
    const Status done = demo(options, report);
    if (options.json) {
        json::object summary = report ? report->summary() : json::object();
        if (!done) {
            summary["ok"] = false;
            summary["error"] = done.error().message;
        }
        fmt::print("{}\n", json::serialize(summary));
    }
    if (!done) {
        (void)complain(done.error());
        return done.error().code == ErrorCode::canceled ? kInterrupted : 1;
    }
    return report->failed() ? 1 : 0;
}

}  // namespace

void add_demo(CLI::App& app, Action& run) {
    CLI::App* command = app.add_subcommand(
        "demo", "Run the main job: unread code reconciles invoices in a machine without network");
    auto options = std::make_shared<DemoOptions>();
    add_node_dirs(*command, options->node);
    command->add_option("--output", options->output,
                        "Folder for what is printed and made  [demo-output/<time>]");
    command->add_flag("--json", options->json,
                      "A summary as JSON on standard output, and nothing else there");
    command->footer("0 when everything was as it must be, 1 when not.");
    command->callback([&run, options] {
        run = [options] {
            log::set_level(log::Level::warn);
            return run_demo(*options);
        };
    });
}

}  // namespace gb::cli
