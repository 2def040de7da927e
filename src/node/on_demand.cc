// SPDX-License-Identifier: Apache-2.0
#include "node/on_demand.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/log.h"
#include "base/subprocess.h"
#include "node/preparation.h"

namespace gb {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFirstRetryMs = 60'000, kLongestRetryMs = 3'600'000;
constexpr std::size_t kMostWords = 1500;

Error being_prepared(const std::string& name, const Preparation& how_far) {
    std::string step = how_far.step.empty() ? "it has just begun" : how_far.step;
    if (!how_far.detail.empty()) step += " (" + how_far.detail + ")";
    return {ErrorCode::unavailable,
            fmt::format("template '{}' is being prepared: {} %, {}; try again", name, how_far.percent, step)};
}

}  // namespace

OnDemand::OnDemand(fs::path templates, Prepare prepare, Clock clock)
    : templates_(std::move(templates)), prepare_(std::move(prepare)), clock_(std::move(clock)) {
    if (prepare_) worker_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

OnDemand::~OnDemand() = default;

Error OnDemand::ask(const std::string& name) {
    if (auto how_far = preparation_of(templates_, name)) return being_prepared(name, *how_far);
    if (!prepare_)
        return {ErrorCode::not_found, fmt::format("template '{0}' not found; `glovebox template prepare {0}` makes it", name)};
    std::lock_guard lock(mutex_);
    if (at_work_ == name) return being_prepared(name, {});
    const bool waits = std::ranges::find(queue_, name) != queue_.end();
    if (auto failed = failures_.find(name); !waits && failed != failures_.end()) {
        const std::int64_t left = failed->second.again_ms - clock_();
        if (left > 0)
            return {ErrorCode::unavailable,
                    fmt::format("template '{}' could not be prepared: {}. It is tried again when somebody asks for it in {} "
                                "or later",
                                name, failed->second.why, duration_text((left + 999) / 1000 * 1000))};
    }
    if (!waits) {
        queue_.push_back(name);
        asked_.notify_one();
    }
    if (at_work_.empty()) return being_prepared(name, {});
    return {ErrorCode::unavailable,
            fmt::format("template '{}' is prepared once '{}' is; try again", name, at_work_)};
}

void OnDemand::run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (asked_.wait(lock, stop, [this] { return !queue_.empty(); })) {
        at_work_ = std::move(queue_.front());
        queue_.pop_front();
        const std::string name = at_work_;
        lock.unlock();
        log::info("a template is prepared because somebody wants it", {{"template", name}});
        const Status done = prepare_(name, stop);
        lock.lock();
        at_work_.clear();
        if (stop.stop_requested()) return;
        settle(name, done);
    }
}

void OnDemand::settle(const std::string& name, const Status& done) {
    if (done) {
        failures_.erase(name);
        log::info("a template is ready", {{"template", name}});
        return;
    }
    log::error("a template could not be prepared", {{"template", name}, {"error", done.error().message}});
    Failure& failure = failures_[name];
    failure.why = done.error().message;
    failure.pause_ms = std::clamp(failure.pause_ms * 2, kFirstRetryMs, kLongestRetryMs);
    failure.again_ms = clock_() + failure.pause_ms;
}

OnDemand::Prepare prepare_by(fs::path program, const NodeOptions& options) {
    std::vector<std::string> folders{"--data-dir",   fs::absolute(options.data_dir),
                                     "--cache-dir",  fs::absolute(options.cache_dir),
                                     "--templates-dir", fs::absolute(options.templates()),
                                     "--images-dir", fs::absolute(options.images_dir),
                                     "--guest-dir",  fs::absolute(options.guest_dir)};
    return [program = std::move(program), folders = std::move(folders)](const std::string& name,
                                                                        const std::stop_token& stop) -> Status {
        std::vector<std::string> argv{"nice", "-n", "10", program, "template", "prepare", name};
        argv.insert(argv.end(), folders.begin(), folders.end());
        RunOptions run_options;
        // It tells its progress every few seconds, and has limits of its own.
        run_options.timeout = {std::chrono::hours(1), std::chrono::hours(48)};
        run_options.stop = stop;
        std::string words;  // what it says beside its progress
        const std::string progress = fmt::format("template {}: ", name);
        run_options.on_stderr_line = [&](std::string_view line) {
            if (line.starts_with(progress) || line.starts_with('{')) return;  // progress and log
            constexpr std::string_view kOurName = "glovebox: ";
            if (line.starts_with(kOurName)) line.remove_prefix(kOurName.size());
            if (words.size() < kMostWords) words += (words.empty() ? "" : " ") + std::string(line);
        };
        GB_TRY_ASSIGN(const RunOutput output, run(argv, run_options));
        if (output.exit_code == 0) return {};
        return fail(ErrorCode::internal,
                    words.empty() ? fmt::format("it ended with code {}", output.exit_code) : words);
    };
}

}  // namespace gb
