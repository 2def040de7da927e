// SPDX-License-Identifier: Apache-2.0
// For tests: waits until something is so, however slow the machine. Gives up when it is not and neither this process nor one
// that it started is at work any more.
#pragma once

#include <chrono>
#include <thread>

#include <unistd.h>

#include "base/process_watch.h"
#include "base/stall.h"

namespace gb::test {

template <class Condition>
[[nodiscard]] bool eventually(Condition condition, std::chrono::milliseconds every = std::chrono::milliseconds(10)) {
    StallLimit limit({std::chrono::minutes(2), std::chrono::minutes(20)});
    ProcessWatch watch(::getpid(), Family::with_descendants);
    for (; !condition(); std::this_thread::sleep_for(every)) {
        if (watch.moved()) limit.moved();
        if (limit.over()) return false;
    }
    return true;
}

}  // namespace gb::test
