// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_job.h"

#include <algorithm>

#include <sys/utsname.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/demo_world.h"
#include "cli/table.h"
#include "http/client.h"

namespace gb::cli {

namespace asio = boost::asio;
namespace fs = std::filesystem;
namespace json = boost::json;
using asio::awaitable;

namespace {

constexpr const char* kFolder = "/home/user/job";
constexpr DemoCounts kExpected{200, 188, 12};

std::string first_line(std::string_view text) {
    return printable(text.substr(0, text.find('\n')));
}

std::string json_lines(const json::array& lines) {
    std::string out;
    for (const json::value& line : lines) out += json::serialize(line) + "\n";
    return out;
}

awaitable<Result<std::string>> reach_from_host(asio::ip::tcp::endpoint to) {
    GB_CO_TRY_ASSIGN(auto connection, co_await http::ClientConnection::connect(to, std::chrono::seconds(10)));
    http::RequestHead head{"GET", "/", {{"Host", to.address().to_string()}}};
    GB_CO_TRY_ASSIGN(auto response, co_await connection.request(std::move(head), ""));
    co_return response.body;
}

std::string curl(const std::string& url) {
    return fmt::format("curl -sS --max-time 20 {}", url);
}

// (a): whether there is a way out at all, and whether this sandbox has it.
awaitable<Status> show_the_way_out(DemoJob& job, const JobSandbox& closed) {
    auto reached = co_await reach_from_host(job.outside);
    job.report.show(
        "from the host", reached.has_value(),
        fmt::format("{} -> {}", job.url, reached ? first_line(*reached) : reached.error().message));
    job.progress(0.15, "make an open sandbox");
    GB_CO_TRY_ASSIGN(const JobSandbox open, co_await job.client.create(true, "control"));
    job.progress(0.25, "reach out from the open sandbox");
    GB_CO_TRY_ASSIGN(const GuestOutput from_open, co_await job.client.run(open, curl(job.url)));
    const bool passed = from_open.exit_code == 0 && from_open.out.starts_with(DemoWorld::kAnswer);
    job.report.show(
        "from an open sandbox", passed,
        passed ? from_open.out
               : fmt::format("curl ends with {}: {} (another firewall of this machine may drop what is "
                             "forwarded: see `glovebox doctor`)",
                             from_open.exit_code, first_line(from_open.err)));
    GB_CO_TRY(co_await job.client.destroy(open));
    job.progress(0.35, "reach out from the closed sandbox");
    GB_CO_TRY_ASSIGN(const GuestOutput from_closed, co_await job.client.run(closed, curl(job.url)));
    job.report.show("from the closed sandbox", from_closed.exit_code != 0,
                    fmt::format("curl ends with {}: {}", from_closed.exit_code,
                                first_line(from_closed.exit_code != 0 ? from_closed.err : from_closed.out)));
    co_return Status{};
}

// (b): the input is in there.
awaitable<Status> show_the_input(DemoJob& job, const JobSandbox& sandbox) {
    for (const char* name : {"invoices.csv", "ledger.csv"})
        GB_CO_TRY(co_await job.client.upload(sandbox, job.report.folder() / name,
                                             fmt::format("{}/{}", kFolder, name)));
    GB_CO_TRY_ASSIGN(
        const GuestOutput counted,
        co_await job.client.run(sandbox, fmt::format("python3 -c \"import csv; print(sum(1 for _ in "
                                                     "csv.DictReader(open('{}/invoices.csv'))))\"",
                                                     kFolder)));
    job.report.show("rows of invoices.csv", counted.exit_code == 0 && counted.out == "200\n",
                    counted.exit_code == 0 ? counted.out : counted.err);
    co_return Status{};
}

// (c): a script that this program does not look at. Its last line of output is its report.
awaitable<Status> show_the_result(DemoJob& job, const JobSandbox& sandbox, const DemoData& data) {
    const std::string script = fmt::format("{}/agent_script.py", kFolder);
    GB_CO_TRY(co_await job.client.upload(sandbox, job.report.folder() / kDemoScript, script));
    GB_CO_TRY_ASSIGN(const GuestOutput ran,
                     co_await job.client.run(sandbox, "python3 " + script, {{"CONTROL_URL", job.url}}));
    std::string_view said = ran.out;
    while (said.ends_with('\n')) said.remove_suffix(1);
    said.remove_prefix(said.rfind('\n') + 1);  // npos + 1 is 0
    boost::system::error_code ec;
    const json::value report = json::parse(said, ec);
    const std::string network = ec ? "-" : field_text(report, "network");
    job.report.show(
        "the script's own report", ran.exit_code == 0 && network != "-" && !network.starts_with("reached"),
        ran.exit_code == 0 ? std::string(said) : fmt::format("it ends with {}: {}", ran.exit_code, ran.err));
    auto result = co_await job.client.download(sandbox, fmt::format("{}/result.csv", kFolder));
    if (!result) {
        job.report.show("result.csv", false, result.error().message);
        co_return Status{};
    }
    GB_CO_TRY(job.report.keep("result.csv", *result));
    const auto counts = check_demo_result(*result, data);
    job.report.show("result.csv", counts && *counts == kExpected,
                    counts
                        ? fmt::format("{} matched, {} mismatched, {} in all; each is what it was made to be",
                                      counts->matched, counts->mismatched, counts->rows)
                        : counts.error().message);
    if (counts)
        job.report.set("result", json::object{{"rows", counts->rows},
                                              {"matched", counts->matched},
                                              {"mismatched", counts->mismatched}});
    co_return Status{};
}

// (d): both attempts, curl's and the script's, are on record. A line is written a moment after its packet.
awaitable<Status> show_the_log(DemoJob& job, const JobSandbox& sandbox) {
    constexpr std::int64_t kPatience_ms = 10'000;
    asio::steady_timer pause(co_await asio::this_coro::executor);
    const std::int64_t deadline = monotonic_ms() + kPatience_ms;
    json::value answer;
    json::array blocked;
    for (;;) {
        GB_CO_TRY_ASSIGN(answer, co_await job.client.evidence(sandbox, "egress"));
        if (!answer.is_array()) co_return fail(ErrorCode::internal, "the server's log is no list");
        blocked.clear();
        for (const json::value& line : answer.get_array())
            if (field_text(line, "verdict") == "deny" &&
                field_text(line, "address") == job.outside.address().to_string())
                blocked.push_back(line);
        if (blocked.size() >= 2 || monotonic_ms() >= deadline) break;
        pause.expires_after(std::chrono::milliseconds(200));
        co_await pause.async_wait(asio::use_awaitable);
    }
    GB_CO_TRY(job.report.keep("egress.jsonl", json_lines(answer.get_array())));
    job.report.show("blocked attempts on record", blocked.size() >= 2, std::to_string(blocked.size()));
    for (const json::value& line : blocked) job.report.say("       " + json::serialize(line));
    job.report.set("blocked", std::move(blocked));
    co_return Status{};
}

// (e): not what was asked for, but what the server has measured.
awaitable<Status> show_what_ran_it(DemoJob& job, const JobSandbox& sandbox, std::int64_t created_us) {
    GB_CO_TRY_ASSIGN(const json::value facts, co_await job.client.evidence(sandbox, "isolation"));
    GB_CO_TRY(job.report.keep("isolation.json", json::serialize(facts) + "\n"));
    GB_CO_TRY_ASSIGN(const GuestOutput inside, co_await job.client.run(sandbox, "uname -sr"));
    utsname outside{};
    ::uname(&outside);
    const std::string layer = field_text(facts, "accelerator") == "kvm" ? "hardware virtualisation (KVM)"
                                                                        : "software emulation (TCG)";
    const std::string reason = field_text(facts, "acceleratorReason");  // what QEMU printed stands in brackets, if it did
    job.report.show("layer", field_text(facts, "class") == "microvm",
                    fmt::format("{} microvm, {}: {}", field_text(facts, "vmm"), layer, reason.substr(0, reason.find(" ("))));
    const std::string kernel = first_line(inside.out),
                      host = fmt::format("{} {}", outside.sysname, outside.release);
    job.report.show("kernel inside and outside", inside.exit_code == 0 && kernel != host,
                    fmt::format("{} inside, {} outside", kernel, host));
    job.report.show("time to create", true, fmt::format("{} ms", created_us / 1000));
    job.report.set("isolation", facts);
    job.report.set("createMs", created_us / 1000);
    co_return Status{};
}

}  // namespace

std::vector<std::string> sandbox_leftovers(const fs::path& data_dir, const std::string& sandbox_id) {
    std::vector<std::string> found;
    std::error_code ec;
    for (const fs::directory_entry& entry : fs::directory_iterator(data_dir / "sandboxes", ec))
        if (entry.path().filename().string().find(sandbox_id) != std::string::npos)
            found.push_back(entry.path());
    // By its disk, which only its machine has mounted.
    const std::string mounted = fmt::format("/sandboxes/{}/", sandbox_id);
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc", ec)) {
        const std::string pid = entry.path().filename();
        if (!std::ranges::all_of(pid, [](char c) { return c >= '0' && c <= '9'; })) continue;
        if (auto mounts = read_file(entry.path() / "mountinfo");
            mounts && mounts->find(mounted) != std::string::npos)
            found.push_back("process " + pid);
    }
    return found;
}

awaitable<Status> run_demo_job(DemoJob job, const DemoData& data) {
    job.report.heading(
        "(a) The way out exists, and it is closed for the sandbox that runs the unread script");
    job.progress(0.05, "make the closed sandbox");
    const std::int64_t begun_us = monotonic_us();
    GB_CO_TRY_ASSIGN(const JobSandbox sandbox, co_await job.client.create(false, "invoice-reconciliation"));
    const std::int64_t created_us = monotonic_us() - begun_us;
    GB_CO_TRY(co_await show_the_way_out(job, sandbox));

    job.report.heading("(b) The job's input, counted inside");
    job.progress(0.5, "bring the input in");
    GB_CO_TRY(co_await show_the_input(job, sandbox));

    job.report.heading("(c) The unread script's result");
    job.progress(0.6, "run the unread script");
    GB_CO_TRY(co_await show_the_result(job, sandbox, data));

    job.report.heading("(d) The decision log");
    job.progress(0.8, "read the decision log");
    GB_CO_TRY(co_await show_the_log(job, sandbox));

    job.report.heading("(e) What really ran it");
    job.progress(0.85, "look at the machine");
    GB_CO_TRY(co_await show_what_ran_it(job, sandbox, created_us));

    job.report.heading("(f) The end");
    job.progress(0.95, "destroy the sandbox");
    GB_CO_TRY_ASSIGN(const bool gone, co_await job.client.destroy(sandbox));
    job.report.show("destroyed", gone, sandbox.id);
    const std::vector<std::string> left = sandbox_leftovers(job.data_dir, sandbox.id);
    job.report.show("files and processes gone", left.empty(),
                    left.empty() ? "nothing is left" : fmt::format("{}", fmt::join(left, ", ")));
    co_return Status{};
}

}  // namespace gb::cli
