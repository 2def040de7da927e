// SPDX-License-Identifier: Apache-2.0
#include "base/stall.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace gb {
namespace {

// More than this between two looks, and it was not the other one who stood still.
constexpr std::int64_t kLongestStep = 5'000;

}  // namespace

StallLimit::StallLimit(const Patience& patience, Clock clock)
    : patience_(patience), clock_(std::move(clock)), begun_(clock_()), looked_(begun_) {}

void StallLimit::look() {
    const std::int64_t now = clock_();
    still_ += std::min(now - std::exchange(looked_, now), kLongestStep);
}

void StallLimit::moved() {
    looked_ = clock_();
    still_ = 0;
}

void StallLimit::watch(std::string_view name, std::uint64_t value) {
    auto [place, first] = seen_.try_emplace(std::string(name), value);
    if (first || place->second == value) return;
    place->second = value;
    moved();
}

bool StallLimit::over() {
    look();
    return still_ >= patience_.still.count() || looked_ - begun_ >= patience_.ceiling.count();
}

std::chrono::milliseconds StallLimit::next_look(std::chrono::milliseconds step) {
    look();
    const std::int64_t left =
        std::min(patience_.still.count() - still_, patience_.ceiling.count() - (looked_ - begun_));
    return std::chrono::milliseconds(std::clamp<std::int64_t>(left, 0, step.count()));
}

std::unexpected<Error> StallLimit::error(std::string_view what) {
    if (patience_.still == patience_.ceiling)
        return fail(ErrorCode::deadline_exceeded,
                    fmt::format("{}: no answer within {}", what, duration_text(patience_.ceiling.count())));
    if (still_ >= patience_.still.count())
        return fail(ErrorCode::deadline_exceeded,
                    fmt::format("{}: nothing moved for {}", what, duration_text(patience_.still.count())));
    return fail(ErrorCode::deadline_exceeded,
                fmt::format("{}: not done within {}, though something moved all the time", what,
                            duration_text(patience_.ceiling.count())));
}

}  // namespace gb
