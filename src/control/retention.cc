// SPDX-License-Identifier: Apache-2.0
#include "control/retention.h"

#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/clock.h"
#include "base/error_tuple.h"
#include "control/sandboxes.h"

namespace gb {

namespace asio = boost::asio;

namespace {

struct Age {
    std::int64_t since_ms, warned_ms;
    std::int64_t limit_ms;   // 0: for ever
    std::int64_t notice_ms;  // a warning cannot come before the beginning

    Age(std::int64_t since, std::int64_t warned, std::int64_t limit, const Retention& retention)
        : since_ms(since), warned_ms(warned), limit_ms(limit), notice_ms(std::min(retention.warn_ms, limit)) {}

    [[nodiscard]] std::int64_t removal_ms(std::int64_t warned) const {
        const std::int64_t over = since_ms + limit_ms;
        return warned == 0 ? over : std::max(over, warned + notice_ms);
    }
    [[nodiscard]] Keeping keeping(std::int64_t now) const {
        if (limit_ms <= 0) return Keeping::keep;
        if (notice_ms > 0 && warned_ms == 0)
            return now >= since_ms + limit_ms - notice_ms ? Keeping::warn : Keeping::keep;
        return now >= removal_ms(warned_ms) ? Keeping::remove : Keeping::keep;
    }
};

Age age_of(const SandboxRecord& paused, const Retention& retention) {
    return {paused.ends_ms, paused.warned_ms, retention.paused_ms, retention};
}

Age age_of(const BuildRecord& snapshot, const Retention& retention) {
    return {snapshot.created_ms, snapshot.warned_ms, retention.snapshots_ms, retention};
}

}  // namespace

std::int64_t removal_ms(const SandboxRecord& paused, const Retention& retention, std::int64_t warned_ms) {
    return age_of(paused, retention).removal_ms(warned_ms);
}

std::int64_t removal_ms(const BuildRecord& snapshot, const Retention& retention, std::int64_t warned_ms) {
    return age_of(snapshot, retention).removal_ms(warned_ms);
}

Keeping keeping_of(const SandboxRecord& paused, const Retention& retention, std::int64_t now) {
    return age_of(paused, retention).keeping(now);
}

Keeping keeping_of(const BuildRecord& snapshot, const Retention& retention, std::int64_t now) {
    return age_of(snapshot, retention).keeping(now);
}

std::chrono::milliseconds look_every(const Retention& retention) {
    constexpr std::int64_t kLeastMs = 100, kMostMs = 3'600'000;
    std::int64_t shortest = kMostMs * 10;
    for (std::int64_t limit : {retention.paused_ms, retention.snapshots_ms}) {
        const std::int64_t notice = std::min(retention.warn_ms, limit);
        for (std::int64_t time : {limit, notice, limit - notice})
            if (time > 0) shortest = std::min(shortest, time);
    }
    return std::chrono::milliseconds(std::clamp(shortest / 10, kLeastMs, kMostMs));
}

asio::awaitable<void> apply_retention(Sandboxes& sandboxes) {
    if (sandboxes.retention().paused_ms <= 0 && sandboxes.retention().snapshots_ms <= 0) co_return;
    auto executor = co_await asio::this_coro::executor;
    asio::steady_timer timer(executor);
    auto busy = std::make_shared<bool>(false);
    for (;;) {
        // A removal must not be cut in the middle by what cancels this loop, so it is none of its steps.
        if (!*busy) {
            *busy = true;
            asio::co_spawn(executor, sandboxes.apply_retention(now_ms()),
                           [busy](const std::exception_ptr& failure) {
                               *busy = false;
                               if (failure) std::rethrow_exception(failure);
                           });
        }
        timer.expires_after(look_every(sandboxes.retention()));
        auto [ec] = co_await timer.async_wait(kErrorTuple);
        if (ec) co_return;
    }
}

}  // namespace gb
