// SPDX-License-Identifier: Apache-2.0
#include "cli/job_run.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/error_table.h"
#include "base/ids.h"
#include "http/message.h"

namespace gb::cli {

namespace asio = boost::asio;
namespace json = boost::json;
using asio::awaitable;

namespace {

constexpr const char* kMark = "glovebox.job.mark";  // tells this job from others of its name
constexpr std::int64_t kGiveUpMs = 60 * 60'000;     // without anything that went well
constexpr auto kFollowFor =
    std::chrono::minutes(10);  // then anew: what nobody follows any more does not stay
constexpr auto kLaunchLimit = std::chrono::minutes(10);  // then anew

// Whether the same again may go better.
bool passes(const Error& error) {
    switch (error.code) {
        case ErrorCode::invalid_argument:
        case ErrorCode::not_found:
        case ErrorCode::permission_denied:
        case ErrorCode::unauthenticated:
        case ErrorCode::data_loss:
        case ErrorCode::no_space:
        case ErrorCode::too_large:
        case ErrorCode::unimplemented:
            return false;
        default:
            return true;
    }
}

bool is_no_connection(const Error& error) {
    return error.code == ErrorCode::unavailable && error.message.starts_with("connect ");
}

// The request may have been carried out, although there is no answer.
bool is_unclear(const Error& error) {
    return (error.code == ErrorCode::unavailable && !is_no_connection(error)) ||
           error.code == ErrorCode::deadline_exceeded;
}

std::string text_of(const json::value& object, const char* name) {
    const json::object* fields = object.if_object();
    const json::value* text = fields != nullptr ? fields->if_contains(name) : nullptr;
    return text != nullptr && text->is_string() ? std::string(text->get_string()) : std::string();
}

}  // namespace

bool JobRun::interrupt() {
    interrupted_ = true;
    if (!begun_) return false;
    report_.detached(sandbox_.id, offset_);
    return true;
}

// Waits before something is tried again. An error: it is not, for it never goes well.
awaitable<Status> JobRun::wait(Error why) {
    if (!passes(why)) co_return std::unexpected(std::move(why));
    const std::int64_t now = monotonic_ms();
    if (heard_ms_ == 0) heard_ms_ = now;
    if (now - heard_ms_ > kGiveUpMs) co_return std::unexpected(why.with("given up"));
    const auto time = backoff_.next();
    // A first failure is how a pause looks from here.
    if (time.count() > 200 && !complained_) {
        report_.note(fmt::format("{}; trying again", why.message));
        complained_ = true;
    }
    asio::steady_timer timer(co_await asio::this_coro::executor, time);
    co_await timer.async_wait(asio::use_awaitable);
    co_return Status{};
}

awaitable<Result<int>> JobRun::run_timeout_s() {
    if (!options_.timeout_s) {
        auto plan = co_await client_.api("GET", "/glovebox/plan");
        if (!plan && is_no_connection(plan.error())) co_return std::unexpected(plan.error());
        if (!plan)
            co_return std::unexpected(
                plan.error().with("the longest run of the plan is not known (--timeout names one)"));
        const json::object* fields = plan->if_object();
        const json::value* longest = fields != nullptr ? fields->if_contains("maxLifetimeSeconds") : nullptr;
        if (longest == nullptr || !longest->is_int64())
            co_return fail(ErrorCode::internal,
                           "the server does not say how long a run may be: use --timeout");
        options_.timeout_s = static_cast<int>(longest->get_int64());
    }
    co_return *options_.timeout_s;
}

// Whether a create whose answer was lost made its sandbox.
awaitable<Result<bool>> JobRun::find_made(std::string mark) {
    const std::string filter = fmt::format("{}={}", kMark, mark);
    GB_CO_TRY_ASSIGN(json::array found,
                     co_await client_.list("/v2/sandboxes?metadata=" + http::percent_encode(filter)));
    if (found.empty()) co_return false;
    sandbox_.id = text_of(found[0], "sandboxID");
    co_return true;
}

awaitable<Status> JobRun::create() {
    GB_CO_TRY_ASSIGN(int timeout_s, co_await run_timeout_s());
    const std::string mark = random_id(20);
    json::object env;
    for (const auto& [name, value] : options_.env) env[name] = value;
    const std::string body =
        json::serialize(json::object{{"templateID", options_.template_ref},
                                     {"timeout", timeout_s},
                                     {"autoPause", true},
                                     {"autoResume", json::object{{"enabled", true}}},
                                     {"metadata", json::object{{kJobMetadata, options_.name}, {kMark, mark}}},
                                     {"envVars", std::move(env)}});
    for (;;) {
        auto made = co_await client_.api("POST", "/v2/sandboxes", body);
        if (made) {
            sandbox_.id = text_of(*made, "sandboxID");
            co_return Status{};
        }
        if (is_no_connection(made.error()))
            co_return std::unexpected(
                made.error().with("is the server running? start it with `glovebox serve`"));
        if (!is_unclear(made.error())) co_return std::unexpected(made.error());
        for (Error why = made.error();;) {
            GB_CO_TRY(co_await wait(why));
            auto found = co_await find_made(mark);
            if (found && *found) co_return Status{};
            if (found) break;
            why = found.error();
        }
    }
}

// Until it runs, in whatever state it was; what a new run is, is told.
awaitable<Status> JobRun::wake() {
    const std::string path = "/sandboxes/" + http::percent_encode(sandbox_.id);
    GB_CO_TRY_ASSIGN(json::value info, co_await client_.api("GET", path));
    if (text_of(info, "state") != "running") {
        GB_CO_TRY_ASSIGN(int timeout_s, co_await run_timeout_s());
        GB_CO_TRY(co_await client_.api("POST", "/v2" + path + "/connect",
                                       json::serialize(json::object{{"timeout", timeout_s}})));
        GB_CO_TRY_ASSIGN(info, co_await client_.api("GET", path));
    }
    sandbox_.token = text_of(info, "envdAccessToken");
    const std::string started_at = text_of(info, "startedAt");
    if (started_at != run_started_at_) {
        run_started_at_ = started_at;
        report_.segment({++segments_, sandbox_.id, started_at, text_of(info, "endAt")});
        backoff_.reset();
    }
    co_return Status{};
}

// Uploads and starts. Each step may be done twice without harm.
awaitable<Status> JobRun::prepare() {
    GB_CO_TRY(co_await wake());
    for (const Upload& upload : options_.uploads) GB_CO_TRY(co_await client_.upload(sandbox_, upload));
    std::string said;
    GB_CO_TRY_ASSIGN(int code, co_await client_.run(sandbox_, start_job_message(options_.command),
                                                    kLaunchLimit, [&](const AgentEvent& event) -> Status {
                                                        if (said.size() < 1000) said += event.err;
                                                        return {};
                                                    }));
    if (code < 0) co_return fail(ErrorCode::unavailable, "the start of the job was killed");
    if (code != 0)
        co_return fail(ErrorCode::failed_precondition, fmt::format("the job cannot be started: {}", said));
    co_return Status{};
}

awaitable<Result<int>> JobRun::launch() {
    for (;;) {
        if (interrupted_) co_return fail(ErrorCode::canceled, "interrupted before the job had begun");
        Status ready = co_await prepare();
        if (ready) break;
        if (ready.error().code == ErrorCode::failed_precondition) co_return std::unexpected(ready.error());
        GB_CO_TRY(co_await wait(ready.error()));
    }
    begun_ = true;
    backoff_.reset();
    if (interrupted_) {
        report_.detached(sandbox_.id, offset_);
        co_return fail(ErrorCode::canceled, "interrupted");
    }
    GB_CO_TRY_ASSIGN(JobEnd end, co_await follow());
    co_return co_await finish(end);
}

awaitable<Result<int>> JobRun::start_and_follow() {
    GB_CO_TRY(co_await create());
    auto done = co_await launch();
    if (done || begun_) co_return done;
    if (auto killed = co_await client_.api("DELETE", "/sandboxes/" + http::percent_encode(sandbox_.id));
        !killed)
        report_.note(fmt::format("sandbox {} could not be removed: {}", sandbox_.id, killed.error().message));
    co_return done;
}

awaitable<Result<int>> JobRun::attach(std::string sandbox_id, std::uint64_t offset) {
    sandbox_.id = std::move(sandbox_id);
    offset_ = offset;
    begun_ = true;
    GB_CO_TRY_ASSIGN(JobEnd end, co_await follow());
    co_return co_await finish(end);
}

awaitable<Result<JobEnd>> JobRun::follow() {
    for (;;) {
        Status awake = co_await wake();
        if (!awake) {
            GB_CO_TRY(co_await wait(awake.error()));
            continue;
        }
        std::string said;
        auto show = [&](const AgentEvent& event) -> Status {
            heard_ms_ = monotonic_ms();
            complained_ = false;
            if (said.size() < 1000) said += event.err;
            if (event.out.empty()) return {};
            Status shown = report_.output(offset_, event.out);
            output_broken_ = !shown;
            if (shown) offset_ += event.out.size();
            if (shown) backoff_.reset();
            return shown;
        };
        // The one that was cut off goes on inside. If it cannot be ended now, its own limit ends it.
        if (!following_.empty()) (void)co_await client_.end(sandbox_, following_);
        following_ = "glovebox-job-" + random_id(12);
        const std::int64_t asked_ms = monotonic_ms();
        auto code = co_await client_.run(sandbox_, follow_job_message(offset_, following_), kFollowFor, show);
        if (code) following_.clear();
        if (monotonic_ms() - asked_ms > 60'000) backoff_.reset();  // a quiet job, but it went well
        if (output_broken_) {
            report_.detached(sandbox_.id, offset_);
            co_return std::unexpected(code.error().with("standard output"));
        }
        if (code && *code == kNoJob)
            co_return fail(ErrorCode::not_found, fmt::format("there is no job in sandbox {}", sandbox_.id));
        if (code) {
            // All of its output, or what is missing is asked for again.
            const auto end = parse_job_end(said);
            if (end && offset_ >= end->output_bytes) co_return *end;
            if (!end && *code == 0)
                co_return fail(
                    ErrorCode::data_loss,
                    fmt::format("the job was killed inside its sandbox {}, perhaps for want of memory: it "
                                "has no exit code",
                                sandbox_.id));
        }
        GB_CO_TRY(co_await wait(code ? Error(ErrorCode::unavailable, "the output was cut") : code.error()));
    }
}

awaitable<Result<int>> JobRun::finish(JobEnd end) {
    const std::string path = "/sandboxes/" + http::percent_encode(sandbox_.id);
    JobOutcome outcome{.sandbox_id = sandbox_.id,
                       .exit_code = end.exit_code,
                       .output_bytes = offset_,
                       .segments = segments_,
                       .sandbox_state = "running"};
    if (!options_.keep) {
        const bool good = end.exit_code == 0;
        auto done =
            good ? co_await client_.api("DELETE", path) : co_await client_.api("POST", path + "/pause", "{}");
        // 404 and 409: it has come about already.
        if (done || done.error().code == (good ? ErrorCode::not_found : code_from_http(409)))
            outcome.sandbox_state = good ? "killed" : "paused";
        else
            report_.note(fmt::format("sandbox {} could not be {}: {}", sandbox_.id,
                                     good ? "killed" : "paused", done.error().message));
    }
    report_.end(outcome);
    co_return end.exit_code;
}

}  // namespace gb::cli
