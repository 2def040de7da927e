// SPDX-License-Identifier: Apache-2.0
#include "control/telemetry.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/error_tuple.h"
#include "base/log.h"
#include "base/offload.h"
#include "control/rate_limit.h"
#include "control/sandbox_metrics.h"

namespace gb {

namespace asio = boost::asio;
using asio::awaitable;

namespace {

constexpr int kMostPages = 4;                       // of one guest at a time; the rest comes the next time
constexpr std::int64_t kLeastBetweenPoints = 1000;  // ms: the guest's counters have a step of 10
constexpr std::int64_t kRecentMs = 1000;            // an answer that is as young needs no other before an end
constexpr int kMostDoublings = 4;                   // of the time until a silent guest is asked again
constexpr std::int64_t kClockSkewMs = 60'000;       // a guest has its clock before its run counts as begun
constexpr std::size_t kEntryOverhead = 100;         // bytes that a row takes beside its text

std::size_t size_of(const GuestLogEntry& entry) {
    std::size_t out = kEntryOverhead + entry.message.size();
    for (const auto& [name, value] : entry.fields) out += name.size() + value.size();
    return out;
}

}  // namespace

// A sandbox in its current run.
struct TelemetryCollector::Guest {
    Guest(const asio::any_io_executor& executor, const SandboxRecord& r)
        : id(r.id),
          team_id(r.team_id),
          run_id(r.run_id),
          started_ms(r.started_ms),
          cpu_count(r.cpu_count),
          done(executor, asio::steady_timer::time_point::max()) {}

    std::string id, team_id, run_id;
    std::int64_t started_ms;  // wall clock
    int cpu_count;

    std::uint64_t next = 0;
    // What is stored of this run already, by a previous server or before a pause that failed, ends here.
    std::int64_t newest_stored_ms = -1;
    bool looked_back = false;  // for that
    CpuTicks ticks;            // of the last point
    // Of the monotonic clock; 0: never.
    std::int64_t point_at = 0, answered_at = 0, due_at = 0;
    int failures = 0;
    std::uint64_t lost = 0;  // entries that nobody has been told of
    RateLimit bytes;
    bool busy = false;
    asio::steady_timer done;  // never expires; cancelled when it is not busy any more
};

TelemetryCollector::TelemetryCollector(asio::any_io_executor executor, asio::thread_pool& pool,
                                       Sandboxes& sandboxes, Store& store, TelemetryOptions options)
    : executor_(std::move(executor)),
      pool_(pool),
      sandboxes_(sandboxes),
      store_(store),
      options_(options),
      written_(executor_, asio::steady_timer::time_point::max()) {}

TelemetryCollector::~TelemetryCollector() = default;

TelemetryCollector::GuestPtr TelemetryCollector::guest_of(const SandboxRecord& record) {
    GuestPtr& guest = guests_[record.id];
    // A new run has a new identity: its log begins again.
    if (!guest || guest->run_id != record.run_id) {
        guest = std::make_shared<Guest>(executor_, record);
        guest->bytes = RateLimit(options_.log_bytes_per_second, options_.log_burst_bytes);
        const std::int64_t age = std::max<std::int64_t>(now_ms() - record.started_ms, 0);
        guest->due_at = monotonic_ms() + std::max<std::int64_t>(options_.first_after.count() - age, 0);
    }
    return guest;
}

awaitable<void> TelemetryCollector::run() {
    asio::steady_timer timer(executor_);
    for (;;) {
        start_due();
        co_await flush();
        timer.expires_after(options_.look_every);
        auto [ec] = co_await timer.async_wait(kErrorTuple);
        if (ec) co_return;
    }
}

void TelemetryCollector::start_due() {
    std::unordered_set<std::string> running;
    std::vector<GuestPtr> due;
    const std::int64_t now = monotonic_ms();
    for (const SandboxRecord& record : sandboxes_.running_sandboxes()) {
        running.insert(record.id);
        GuestPtr guest = guest_of(record);
        if (!guest->busy && guest->due_at <= now) due.push_back(std::move(guest));
    }
    std::erase_if(guests_, [&](const auto& item) { return !running.contains(item.first); });
    std::ranges::sort(due, {}, &Guest::due_at);
    for (const GuestPtr& guest : due) {
        if (in_flight_ >= options_.most_at_once) break;
        ++in_flight_;
        asio::co_spawn(executor_, collect(guest), [this](const std::exception_ptr&) { --in_flight_; });
    }
}

awaitable<void> TelemetryCollector::collect(GuestPtr guest) {
    if (guest->busy) co_return;
    guest->busy = true;
    const struct Release {
        Guest& guest;
        ~Release() {
            guest.busy = false;
            guest.done.cancel();
        }
    } release{*guest};
    if (!guest->looked_back) co_await find_last_entry(guest);
    for (int page = 0; page < kMostPages; ++page) {
        const std::int64_t asked_at = monotonic_ms();
        Result<Telemetry> answer = co_await sandboxes_.node().telemetry(guest->id, guest->next);
        if (!answer) {
            if (guest->failures++ == 0)
                log::warn("no telemetry of a sandbox",
                          {{"sandbox", guest->id}, {"error", answer.error().message}});
            guest->due_at =
                monotonic_ms() + (options_.every.count() << std::min(guest->failures, kMostDoublings));
            co_return;
        }
        guest->failures = 0;
        guest->answered_at = asked_at;
        guest->due_at = asked_at + options_.every.count();
        take(*guest, *answer);
        if (!answer->more) break;
    }
}

awaitable<void> TelemetryCollector::find_last_entry(GuestPtr guest) {
    guest->looked_back = true;
    auto entries = co_await offload(pool_, [this, &guest] {
        return store_.logs(
            {.sandbox_id = guest->id, .from_ms = guest->started_ms - kClockSkewMs, .newest_first = true});
    });
    if (!entries) co_return;
    for (const LogEntry& entry : *entries) {
        auto logger = entry.fields.find("logger");
        if (logger != entry.fields.end() && logger->second == "sandbox") continue;
        guest->newest_stored_ms = entry.time_ms;
        co_return;
    }
}

void TelemetryCollector::take(Guest& guest, const Telemetry& answer) {
    const std::int64_t now = now_ms();
    take_metrics(guest, answer.metrics);
    guest.next = answer.next;
    guest.lost += answer.dropped;
    for (const GuestLogEntry& entry : answer.entries) {
        if (entry.time_ms <= guest.newest_stored_ms) continue;
        if (!guest.bytes.take(monotonic_ms(), static_cast<double>(size_of(entry)))) {
            ++guest.lost;
            continue;
        }
        // A guest's clock is its own; an entry of the far future would never be forgotten.
        const std::int64_t time =
            std::clamp(entry.time_ms, std::min(guest.started_ms - kClockSkewMs, now), now);
        pending_.entries.push_back({time, guest.id, guest.team_id, entry.level, entry.message, entry.fields});
    }
    if (guest.lost == 0 || !guest.bytes.take(monotonic_ms(), kEntryOverhead)) return;
    pending_.entries.push_back({now,
                                guest.id,
                                guest.team_id,
                                "warn",
                                fmt::format("{} log entries were dropped: there were too many", guest.lost),
                                {{"logger", "sandbox"}, {"dropped", std::to_string(guest.lost)}}});
    guest.lost = 0;
}

void TelemetryCollector::take_metrics(Guest& guest, const GuestMetrics& metrics) {
    const std::int64_t now = monotonic_ms();
    if (guest.point_at != 0 && now - guest.point_at < kLeastBetweenPoints) return;
    const CpuTicks ticks{metrics.cpu_busy_ticks, metrics.cpu_total_ticks};
    pending_.points.push_back({.sandbox_id = guest.id,
                               .team_id = guest.team_id,
                               .time_ms = now_ms(),
                               .cpu_count = guest.cpu_count,
                               .cpu_used_pct = cpu_used_percent(guest.ticks, ticks, guest.cpu_count),
                               .mem_used = metrics.mem_used,
                               .mem_total = metrics.mem_total,
                               .mem_cache = metrics.mem_cache,
                               .disk_used = metrics.disk_used,
                               .disk_total = metrics.disk_total});
    guest.point_at = now;
    guest.ticks = ticks;
}

awaitable<void> TelemetryCollector::flush() {
    while (writing_) co_await written_.async_wait(kErrorTuple);
    if (pending_.points.empty() && pending_.entries.empty()) co_return;
    writing_ = true;
    const Batch batch = std::exchange(pending_, {});
    const Status written = co_await offload(pool_, [&]() -> Status {
        if (!batch.points.empty()) GB_TRY(store_.add_metrics(batch.points));
        if (!batch.entries.empty()) GB_TRY(store_.add_logs(batch.entries));
        return {};
    });
    writing_ = false;
    written_.cancel();
    if (!written) log::error("telemetry was not recorded", {{"error", written.error().message}});
}

awaitable<void> TelemetryCollector::collect_now(SandboxRecord record) {
    GuestPtr guest = guest_of(record);
    const std::int64_t asked_at = monotonic_ms();
    while (guest->busy && guest->failures == 0) co_await guest->done.async_wait(kErrorTuple);
    // In the same millisecond it may have answered before it was asked.
    if (guest->failures == 0 && guest->answered_at <= asked_at) co_await collect(guest);
    co_await flush();
}

awaitable<void> TelemetryCollector::collect_next(GuestPtr guest) {
    while (guest->busy) co_await guest->done.async_wait(kErrorTuple);
    co_await collect(guest);
}

awaitable<void> TelemetryCollector::collect_last(SandboxRecord record) {
    GuestPtr guest = guest_of(record);
    const bool recent = guest->answered_at != 0 && monotonic_ms() - guest->answered_at < kRecentMs;
    if (recent || guest->failures > 0) co_return;
    // Shared: the collection may go on after this has given up on it.
    struct Wait {
        explicit Wait(const asio::any_io_executor& executor) : timer(executor) {}
        asio::steady_timer timer;
        bool over = false;
    };
    auto wait = std::make_shared<Wait>(executor_);
    wait->timer.expires_after(options_.last_limit);
    asio::co_spawn(executor_, collect_next(guest), [wait](const std::exception_ptr&) {
        wait->over = true;
        wait->timer.cancel();
    });
    if (!wait->over) co_await wait->timer.async_wait(kErrorTuple);
    asio::co_spawn(executor_, flush(), asio::detached);  // while the machine is ended
}

}  // namespace gb
