// SPDX-License-Identifier: Apache-2.0
// Turns the output of long-running programs into Progress.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/subprocess.h"
#include "image/progress.h"

namespace gb::image {

// What a line of output says: how far its program is (0 to 1) and a few words.
struct Reading {
    double fraction = 0;
    std::string detail;
};
using MeterFn = std::function<Reading(std::string_view line)>;

class Reporter {
  public:
    explicit Reporter(ProgressFn progress);  // may be empty

    // The part of the whole that the next program or step stands for.
    struct Span {
        std::string step;
        double from = 0;
        double to = 1;
    };

    void report(const Span& span, const Reading& reading = {});

    // run_checked() that calls back on this thread once a second, and sooner when there is news.
    Result<RunOutput> run(const Span& span, const std::vector<std::string>& argv, RunOptions options,
                          const MeterFn& meter = {});

  private:
    ProgressFn progress_;
    std::int64_t started_ms_;
    double reached_ = 0;
};

}  // namespace gb::image
