// SPDX-License-Identifier: Apache-2.0
// Progress of something that takes long, for a person: one line that is rewritten on a terminal, a line every few
// seconds elsewhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gb::cli {

class ProgressLine {
  public:
    explicit ProgressLine(std::string title);
    ~ProgressLine();  // ends the line
    void update(double fraction, std::string_view step, std::string_view detail);
    void clear();  // takes what it wrote off a terminal

  private:
    std::string title_;
    bool terminal_;
    bool drawn_ = false;
    std::int64_t started_ms_;
    std::int64_t last_ms_ = 0;
    std::string last_step_;
};

}  // namespace gb::cli
