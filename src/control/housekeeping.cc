// SPDX-License-Identifier: Apache-2.0
#include "control/housekeeping.h"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/clock.h"
#include "base/error_tuple.h"
#include "base/log.h"
#include "base/offload.h"

namespace gb {

namespace asio = boost::asio;

asio::awaitable<void> keep_house(Store& store, asio::thread_pool& pool, HousekeepingOptions options) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    std::int64_t forget_at_ms = monotonic_ms();
    for (;;) {
        Status seen = co_await offload(pool, [&] { return store.see_open_runs(now_ms()); });
        if (!seen) log::error("what runs was not recorded", {{"error", seen.error().message}});
        if (monotonic_ms() >= forget_at_ms) {
            forget_at_ms = monotonic_ms() + options.forget_every.count();
            const std::int64_t oldest =
                now_ms() - std::chrono::duration_cast<std::chrono::milliseconds>(options.retention).count();
            Status forgotten = co_await offload(pool, [&] { return store.forget_before(oldest); });
            if (!forgotten) log::error("old records were not removed", {{"error", forgotten.error().message}});
        }
        timer.expires_after(options.see_runs_every);
        auto [ec] = co_await timer.async_wait(kErrorTuple);
        if (ec) co_return;
    }
}

}  // namespace gb
