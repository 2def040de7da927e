// SPDX-License-Identifier: Apache-2.0
// Work that takes longer than one run of a sandbox may last.
#include <array>
#include <csignal>

#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/ids.h"
#include "cli/ask.h"
#include "cli/commands.h"
#include "cli/job_run.h"
#include "cli/table.h"

namespace gb::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr std::array kJobs{Column{"NAME", "name"}, Column{"SANDBOX", "sandboxID"}, Column{"STATE", "state"},
                           Column{"STARTED", "startedAt"}, Column{"ENDS", "endAt"}};

struct JobCommandOptions : AskOptions {
    JobOptions job;
    std::vector<std::string> env, uploads;
    std::string sandbox_id;
    std::uint64_t offset = 0;
};

// Everything that can be wrong with the command line, before anything is made.
Status read_arguments(JobCommandOptions& options) {
    for (const std::string& text : options.env) {
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos || equals == 0)
            return fail(ErrorCode::invalid_argument, fmt::format("--env '{}': wanted is NAME=VALUE", text));
        options.job.env[text.substr(0, equals)] = text.substr(equals + 1);
    }
    for (const std::string& text : options.uploads) {
        GB_TRY_ASSIGN(Upload upload, parse_upload(text));
        struct stat info{};
        if (::stat(upload.file.c_str(), &info) != 0) return fail_errno("--upload " + upload.file.string());
        if (!S_ISREG(info.st_mode) || ::access(upload.file.c_str(), R_OK) != 0)
            return fail(ErrorCode::invalid_argument,
                        fmt::format("--upload '{}': no regular file that can be read", upload.file.string()));
        options.job.uploads.push_back(std::move(upload));
    }
    if (options.job.name.empty()) options.job.name = "job-" + random_id(8);
    return {};
}

Result<JobClient> client_of(const JobCommandOptions& options) {
    GB_TRY_ASSIGN(ServerAddress server, server_of(options));
    GB_TRY_ASSIGN(ServerPlace place, resolve_server(server.url));
    return JobClient(std::move(server), std::move(place));
}

std::string attach_hint(const JobCommandOptions& options) {
    return "glovebox job attach" +
           (options.data_dir_given ? " --data-dir " + options.node.data_dir.string() : "");
}

using JobWork = std::function<asio::awaitable<Result<int>>(JobRun& job)>;

int follow_job(JobCommandOptions& options, const JobWork& work) {
    if (Status good = read_arguments(options); !good) return complain(good.error());
    auto client = client_of(options);
    if (!client) return complain(client.error());
    asio::io_context io(1);
    JobRun job(*std::move(client), options.job, JobReport(options.json, attach_hint(options)));
    int code = kInterrupted;
    asio::signal_set signals(io, SIGINT, SIGTERM);
    bool asked = false;
    std::function<void()> listen = [&] {
        signals.async_wait([&](const boost::system::error_code& ec, int) {
            if (ec) return;
            if (job.interrupt() || asked) return io.stop();  // the second time without tidying up
            asked = true;
            listen();
        });
    };
    listen();
    asio::co_spawn(io, work(job), [&](const std::exception_ptr& failure, Result<int> done) {
        if (failure) std::rethrow_exception(failure);
        if (done)
            code = *done;
        else if (done.error().code != ErrorCode::canceled)
            code = complain(done.error());
        io.stop();
    });
    io.run();
    return code;
}

asio::awaitable<Result<json::array>> read_jobs(JobClient& client) {
    GB_CO_TRY_ASSIGN(json::array sandboxes, co_await client.list("/v2/sandboxes"));
    json::array jobs;
    for (json::value& sandbox : sandboxes) {
        json::object* fields = sandbox.if_object();
        const json::value* metadata = fields != nullptr ? fields->if_contains("metadata") : nullptr;
        const json::object* pairs = metadata != nullptr ? metadata->if_object() : nullptr;
        const json::value* name = pairs != nullptr ? pairs->if_contains(kJobMetadata) : nullptr;
        if (name == nullptr) continue;
        json::object job{{"name", *name}};
        for (const char* field : {"sandboxID", "state", "startedAt", "endAt"})
            if (const json::value* value = fields->if_contains(field)) job[field] = *value;
        jobs.push_back(std::move(job));
    }
    co_return jobs;
}

int list_jobs(const JobCommandOptions& options) {
    auto client = client_of(options);
    if (!client) return complain(client.error());
    asio::io_context io(1);
    int code = 1;
    asio::co_spawn(io, read_jobs(*client), [&](const std::exception_ptr& failure, Result<json::array> jobs) {
        if (failure) std::rethrow_exception(failure);
        if (!jobs) {
            code = complain(jobs.error());
            return;
        }
        code = 0;
        fmt::print("{}",
                   options.json ? json::serialize(*jobs) + "\n" : format_table(kJobs, json::value(*jobs)));
    });
    io.run();
    return code;
}

void add_common(CLI::App& command, JobCommandOptions& options) {
    command
        .add_option("--timeout", options.job.timeout_s,
                    "Seconds of one run of the sandbox  [the longest of the plan]")
        ->check(CLI::Range(1, 365 * 24 * 3600));
    command.add_flag("--keep", options.job.keep,
                     "Leave the sandbox as it is at the end  [ended after success, paused after failure]");
}

}  // namespace

void add_job(CLI::App& app, Action& run) {
    CLI::App* group = app.add_subcommand("job", "JobWork that takes longer than one run of a sandbox may last");
    group->require_subcommand(1);
    auto options = std::make_shared<JobCommandOptions>();

    CLI::App* start = add_asking(
        *group, "run", "Run a command in a sandbox of its own and follow it to its end", options, run,
        [options] { return follow_job(*options, [](JobRun& job) { return job.start_and_follow(); }); });
    start->add_option("--name", options->job.name, "Name for people  [made up]");
    start->add_option("--template", options->job.template_ref, "What the sandbox is made of")
        ->capture_default_str();
    start->add_option("--env", options->env, "NAME=VALUE for the command")->allow_extra_args(false);
    start->add_option("--upload", options->uploads, "FILE:PATH, a file that is put into the sandbox first")
        ->allow_extra_args(false);
    add_common(*start, *options);
    start->add_option("command", options->job.command, "The command and its arguments, after --")->required();

    CLI::App* attach = add_asking(*group, "attach", "Follow a job again; one that is paused goes on", options,
                                  run, [options] {
                                      return follow_job(*options, [options](JobRun& job) {
                                          return job.attach(options->sandbox_id, options->offset);
                                      });
                                  });
    attach->add_option("sandbox", options->sandbox_id, "Id of the job's sandbox")->required();
    attach->add_option("--offset", options->offset, "Show the output from this byte on")
        ->capture_default_str();
    add_common(*attach, *options);

    add_asking(*group, "list", "List the sandboxes of jobs, paused ones too", options, run,
               [options] { return list_jobs(*options); });
}

}  // namespace gb::cli
