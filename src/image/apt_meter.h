// SPDX-License-Identifier: Apache-2.0
// Reads what mmdebstrap and apt print and estimates how far an installation is. Pure.
#pragma once

#include <string>
#include <string_view>

namespace gb::image {

class AptMeter {
  public:
    void line(std::string_view text);  // one line of standard error of `mmdebstrap --verbose`

    [[nodiscard]] double fraction() const;                               // 0 to 1, never goes back
    [[nodiscard]] const std::string& detail() const { return detail_; }  // e.g. "unpacking libc6"

  private:
    // mmdebstrap installs in two rounds: the essential packages, then all the others.
    struct Round {
        int total = 0, fetched = 0, unpacked = 0, configured = 0;
        [[nodiscard]] double fraction() const;
    };

    Round rounds_[2];
    int round_ = -1;
    bool finished_ = false;
    std::string detail_ = "starting";
};

}  // namespace gb::image
