// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/archive_commands.h"
#include "cli/commands.h"
#include "cli/paths.h"
#include "cli/prepare_template.h"
#include "image/definition.h"

namespace gb::cli {
namespace {

int prepare(const NodeOptions& options, std::vector<std::string> names, bool force) {
    if (names.empty()) {
        auto all = image::list_definitions(options.images_dir);
        if (!all) return complain(all.error());
        names = *std::move(all);
    }
    TemplateBuilder builder(options);
    for (const std::string& name : names) {
        auto prepared = prepare_template(builder, name, force ? Reuse::never : Reuse::when_unchanged);
        if (!prepared) return complain(prepared.error());
        const Manifest& m = prepared->stored.manifest;
        fmt::print("template {} {}: {} CPU, {} MiB memory, {} MiB disk, {}, build {}\n", m.info.name,
                   prepared->reused ? "is up to date" : "is ready", m.info.cpu_count, m.info.memory_mib, m.info.disk_mib,
                   engine::accelerator_name(m.accelerator), m.info.build_id);
    }
    return 0;
}

int list(const NodeOptions& options, bool json) {
    TemplateStore store(options.templates());
    auto all = store.list();
    if (!all) return complain(all.error());
    if (json) {
        std::string out = "[";
        for (const StoredTemplate& stored : *all) {
            std::string text = write_manifest(stored.manifest);
            text.pop_back();
            out += (out.size() > 1 ? "," : "") + text;
        }
        fmt::print("{}]\n", out);
        return 0;
    }
    fmt::print("{:<24}{:<22}{:>4}{:>12}{:>12}  {:<8}{}\n", "NAME", "ID", "CPU", "MEMORY MIB", "DISK MIB", "RUNS ON",
               "ORIGIN");
    for (const StoredTemplate& stored : *all) {
        const Manifest& m = stored.manifest;
        fmt::print("{:<24}{:<22}{:>4}{:>12}{:>12}  {:<8}{} {}\n", m.info.name, m.info.id, m.info.cpu_count,
                   m.info.memory_mib, m.info.disk_mib, engine::accelerator_name(m.accelerator),
                   m.imported_ms != 0 ? "imported" : "made here", rfc3339(m.arrived_ms()).substr(0, 10));
    }
    return 0;
}

}  // namespace

void add_template(CLI::App& app, Action& run) {
    CLI::App* group = app.add_subcommand("template", "Prepare, list, export and import templates");
    group->require_subcommand(1);
    auto options = std::make_shared<NodeOptions>(default_node_options());

    CLI::App* prepare_command = group->add_subcommand("prepare", "Build templates, or see that they are up to date");
    auto names = std::make_shared<std::vector<std::string>>();
    auto force = std::make_shared<bool>(false);
    add_node_dirs(*prepare_command, *options);
    prepare_command->add_option("names", *names, "Names of definitions; all of them when none is given");
    prepare_command
        ->add_option_function<std::string>(
            "--give-up-after",
            [options](const std::string& text) {
                options->prepare_ceiling = std::chrono::milliseconds(parse_duration(text).value_or(0));
            },
            "How long a step of a machine's start may take, though something moves all the time  [4h]")
        ->check([](const std::string& text) {
            return parse_duration(text) ? std::string() : "not a time like 90s, 30m or 4h: " + text;
        });
    prepare_command->add_flag("--force", *force, "Boot and freeze again even if nothing has changed");
    prepare_command->callback([&run, options, names, force] {
        run = [options, names, force] {
            log::set_level(log::Level::warn);
            return prepare(*options, *names, *force);
        };
    });

    CLI::App* list_command = group->add_subcommand("list", "List the templates that sandboxes can start from");
    auto json = std::make_shared<bool>(false);
    add_data_dir(*list_command, *options);
    add_templates_dir(*list_command, *options);
    list_command->add_flag("--json", *json, "As JSON");
    list_command->callback([&run, options, json] { run = [options, json] { return list(*options, *json); }; });

    add_archive_commands(*group, run);
}

}  // namespace gb::cli
