// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"

namespace gb::cli {
namespace {

constexpr int kBarWidth = 24;
constexpr std::int64_t kPlainEveryMs = 5000;
constexpr std::int64_t kDrawEveryMs = 100;

}  // namespace

ProgressLine::ProgressLine(std::string title)
    : title_(std::move(title)), terminal_(::isatty(2) == 1), started_ms_(monotonic_ms()) {}

ProgressLine::~ProgressLine() {
    if (drawn_ && terminal_) fmt::print(stderr, "\n");
}

void ProgressLine::update(double fraction, std::string_view step, std::string_view detail) {
    fraction = std::clamp(fraction, 0.0, 1.0);
    const std::int64_t now = monotonic_ms();
    const bool new_step = step != last_step_;
    if (!new_step && now - last_ms_ < (terminal_ ? kDrawEveryMs : kPlainEveryMs)) return;
    last_ms_ = now;
    last_step_ = step;
    drawn_ = true;
    const auto seconds = (now - started_ms_) / 1000;
    if (!terminal_) {
        fmt::print(stderr, "{}: {:3.0f} %, {} s, {} ({})\n", title_, fraction * 100, seconds, step, detail);
        return;
    }
    const int filled = static_cast<int>(fraction * kBarWidth);
    std::string text = fmt::format("{} [{}{}] {:3.0f} % {:4} s  {}: {}", title_, std::string(filled, '#'),
                                   std::string(kBarWidth - filled, '.'), fraction * 100, seconds, step, detail);
    fmt::print(stderr, "\r\033[K{}", text.substr(0, 150));
}

void ProgressLine::clear() {
    if (drawn_ && terminal_) fmt::print(stderr, "\r\033[K");
    drawn_ = false;
}

}  // namespace gb::cli
