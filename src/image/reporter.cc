// SPDX-License-Identifier: Apache-2.0
#include "image/reporter.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "base/clock.h"

namespace gb::image {

Reporter::Reporter(ProgressFn progress) : progress_(std::move(progress)), started_ms_(monotonic_ms()) {}

void Reporter::report(const Span& span, const Reading& reading) {
    if (!progress_) return;
    reached_ = std::max(reached_, span.from + (span.to - span.from) * std::clamp(reading.fraction, 0.0, 1.0));
    std::string elapsed = fmt::format("{} s", (monotonic_ms() - started_ms_) / 1000);
    progress_({.step = span.step,
               .fraction = reached_,
               .detail = reading.detail.empty() ? elapsed : fmt::format("{}, {}", reading.detail, elapsed)});
}

Result<RunOutput> Reporter::run(const Span& span, const std::vector<std::string>& argv, RunOptions options,
                                const MeterFn& meter) {
    std::mutex mutex;
    std::condition_variable wake;
    Reading latest;
    bool news = false;
    std::optional<Result<RunOutput>> result;

    options.on_stderr_line = [&](std::string_view line) {
        if (!meter) return;
        Reading reading = meter(line);
        std::lock_guard lock(mutex);
        if (reading.detail != latest.detail) {
            news = true;
            wake.notify_one();
        }
        latest = std::move(reading);
    };
    report(span);
    std::jthread worker([&] {
        Result<RunOutput> output = run_checked(argv, options);
        std::lock_guard lock(mutex);
        result = std::move(output);
        wake.notify_one();
    });
    std::unique_lock lock(mutex);
    while (!result) {
        // Not more than five calls a second, however fast the program talks.
        wake.wait_for(lock, std::chrono::milliseconds(200), [&] { return result.has_value(); });
        wake.wait_for(lock, std::chrono::milliseconds(800), [&] { return news || result.has_value(); });
        news = false;
        Reading now = latest;
        lock.unlock();
        report(span, now);
        lock.lock();
    }
    return *std::move(result);
}

}  // namespace gb::image
