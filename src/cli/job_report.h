// SPDX-License-Identifier: Apache-2.0
// What a job's client prints: the job's output as it is and everything else on standard error, or one JSON
// object a line on standard output.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gb::cli {

struct JobSegment {
    int number = 0;  // of those that this client has seen, from 1
    std::string sandbox_id, started_at, ends_at;
};

struct JobOutcome {
    std::string sandbox_id;
    int exit_code = 0;
    std::uint64_t output_bytes = 0;
    int segments = 0;
    std::string sandbox_state;  // killed, paused, running
};

// The lines of the JSON form. Pure.
std::string segment_line(const JobSegment& segment);
// Text where it is UTF-8, else base64.
std::string output_line(std::uint64_t offset, std::string_view bytes);
std::string end_line(const JobOutcome& outcome);

class JobReport {
  public:
    // `attach_hint` is the command that follows a job again, without the sandbox's id.
    JobReport(bool as_json, std::string attach_hint) : json_(as_json), attach_hint_(std::move(attach_hint)) {}

    void segment(const JobSegment& segment) const;
    // On an error of standard output nothing of `bytes` counts as shown.
    [[nodiscard]] Status output(std::uint64_t offset, std::string_view bytes) const;
    void note(std::string_view text) const;  // always on standard error
    void end(const JobOutcome& outcome) const;
    // This client goes away, the job goes on.
    void detached(const std::string& sandbox_id, std::uint64_t offset) const;

  private:
    bool json_;
    std::string attach_hint_;
};

}  // namespace gb::cli
