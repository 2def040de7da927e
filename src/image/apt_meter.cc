// SPDX-License-Identifier: Apache-2.0
#include "image/apt_meter.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace gb::image {
namespace {

constexpr std::string_view kNewlyInstalled = " newly installed";

// "69" of "0 upgraded, 69 newly installed, 0 to remove and 0 not upgraded."
int newly_installed(std::string_view text) {
    std::size_t end = text.find(kNewlyInstalled);
    if (end == std::string_view::npos) return -1;
    std::size_t start = text.rfind(' ', end - 1) + 1;
    int count = -1;
    std::from_chars(text.data() + start, text.data() + end, count);
    return count;
}

std::string_view word_after(std::string_view text, std::string_view prefix) {
    text.remove_prefix(prefix.size());
    return text.substr(0, text.find_first_of(" :"));
}

}  // namespace

double AptMeter::Round::fraction() const {
    if (total <= 0) return 0;
    auto part = [&](int n) { return static_cast<double>(std::min(n, total)) / total; };
    return 0.1 * part(fetched) + 0.45 * part(unpacked) + 0.45 * part(configured);
}

double AptMeter::fraction() const {
    if (finished_) return 1;
    // The essential packages are few but old friends of dpkg's: about a sixth of the time of a small image.
    return 0.15 * rounds_[0].fraction() + 0.83 * rounds_[1].fraction();
}

void AptMeter::line(std::string_view text) {
    if (text.starts_with("I: ")) {
        detail_ = text.substr(3);
        if (text.starts_with("I: success")) finished_ = true;
        return;
    }
    if (int count = newly_installed(text); count >= 0) {
        if (round_ < 1) ++round_;
        rounds_[round_].total = count;
        return;
    }
    if (round_ < 0) return;
    Round& round = rounds_[round_];
    if (text.starts_with("Get:")) {
        ++round.fetched;
        detail_ = fmt::format("downloading, {} of {}", std::min(round.fetched, round.total), round.total);
    } else if (text.starts_with("Unpacking ")) {
        round.fetched = round.total;
        ++round.unpacked;
        detail_ = fmt::format("unpacking {}", word_after(text, "Unpacking "));
    } else if (text.starts_with("Setting up ")) {
        ++round.configured;
        detail_ = fmt::format("setting up {}", word_after(text, "Setting up "));
    }
}

}  // namespace gb::image
