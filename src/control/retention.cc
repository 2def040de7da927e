#include "control/retention.h"

#include <algorithm>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/clock.h"
#include "control/sandboxes.h"

namespace gb {

namespace asio = boost::asio;

namespace {

// A warning cannot come before the pause.
std::int64_t notice_ms(const Retention& retention) {
    return std::min(retention.warn_ms, retention.paused_ms);
}

}  // namespace

std::int64_t removal_ms(const SandboxRecord& paused, const Retention& retention, std::int64_t warned_ms) {
    const std::int64_t over = paused.ends_ms + retention.paused_ms;
    return warned_ms == 0 ? over : std::max(over, warned_ms + notice_ms(retention));
}

Keeping keeping_of(const SandboxRecord& paused, const Retention& retention, std::int64_t now) {
    if (retention.paused_ms <= 0) return Keeping::keep;
    const std::int64_t notice = notice_ms(retention);
    if (notice > 0 && paused.warned_ms == 0)
        return now >= paused.ends_ms + retention.paused_ms - notice ? Keeping::warn : Keeping::keep;
    return now >= removal_ms(paused, retention, paused.warned_ms) ? Keeping::remove : Keeping::keep;
}

std::chrono::milliseconds look_every(const Retention& retention) {
    constexpr std::int64_t kLeastMs = 100, kMostMs = 3'600'000;
    const std::int64_t notice = notice_ms(retention);
    std::int64_t shortest = retention.paused_ms;
    for (std::int64_t time : {notice, retention.paused_ms - notice})
        if (time > 0) shortest = std::min(shortest, time);
    return std::chrono::milliseconds(std::clamp(shortest / 10, kLeastMs, kMostMs));
}

std::string duration_text(std::int64_t ms) {
    constexpr std::int64_t kDayMs = 24LL * 3'600'000;
    if (ms >= kDayMs) return fmt::format("{:.6g} days", static_cast<double>(ms) / kDayMs);
    if (ms >= 3'600'000) return fmt::format("{:.6g} hours", static_cast<double>(ms) / 3'600'000);
    return fmt::format("{:.6g} s", static_cast<double>(ms) / 1000);
}

asio::awaitable<void> keep_paused(Sandboxes& sandboxes) {
    if (sandboxes.retention().paused_ms <= 0) co_return;
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
        auto [ec] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
        if (ec) co_return;
    }
}

}  // namespace gb
