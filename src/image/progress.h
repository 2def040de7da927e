// SPDX-License-Identifier: Apache-2.0
// How far a long build is. Callbacks come on the thread that called the builder, at least once every two
// seconds.
#pragma once

#include <functional>
#include <string>

namespace gb::image {

struct Progress {
    std::string step;     // what is being done, e.g. "install packages"
    double fraction = 0;  // of the whole build, 0 to 1; never goes back
    std::string detail;   // the latest news of the step and the seconds since the build began
};

using ProgressFn = std::function<void(const Progress&)>;

}  // namespace gb::image
