// SPDX-License-Identifier: Apache-2.0
// What a server does beside answering: notes until when runs are known to go on, forgets old records.
#pragma once

#include <chrono>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>

#include "store/store.h"

namespace gb {

struct HousekeepingOptions {
    std::chrono::milliseconds see_runs_every{15'000};  // what a crash may leave unmetered
    std::chrono::milliseconds forget_every{3'600'000};
    std::chrono::hours retention{7 * 24};  // of events, metrics and logs
};

// Goes on until it is cancelled.
boost::asio::awaitable<void> keep_house(Store& store, boost::asio::thread_pool& pool, HousekeepingOptions options);

}  // namespace gb
