// SPDX-License-Identifier: Apache-2.0
// What guests count and log, on its way to the store: asks every running sandbox every few seconds, those
// that are about to end once more. A guest that does not answer, or answers nonsense, costs itself its points
// and nobody else anything. Lives on the executor of the sandboxes.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include "control/sandboxes.h"
#include "store/store.h"

namespace gb {

struct TelemetryOptions {
    std::chrono::milliseconds every{5000};
    std::chrono::milliseconds first_after{700};  // of a run: its first commands go before
    std::chrono::milliseconds look_every{250};   // for sandboxes whose time has come
    std::size_t most_at_once = 16;
    std::chrono::milliseconds last_limit{300};  // what a kill or a pause may have to wait for
    // What a sandbox may have kept of its log: a guest that writes without end must not fill the host's disk.
    double log_bytes_per_second = 2048;
    double log_burst_bytes = 4 << 20;
};

class TelemetryCollector {
  public:
    // Everything must outlive it; it must outlive what runs on the executor. `pool` is for writing to the
    // store.
    TelemetryCollector(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool,
                       Sandboxes& sandboxes, Store& store, TelemetryOptions options = {});
    ~TelemetryCollector();

    // Goes on until it is cancelled.
    boost::asio::awaitable<void> run();

    // Returns when the store has what a running sandbox has logged until this call, or when its guest did not
    // answer. One that did not answer before is not waited for.
    boost::asio::awaitable<void> collect_now(SandboxRecord record);

    // For a machine that will be ended or saved: no longer than last_limit, not at all when it was asked a
    // second ago.
    boost::asio::awaitable<void> collect_last(SandboxRecord record);

  private:
    struct Guest;
    using GuestPtr = std::shared_ptr<Guest>;
    struct Batch {
        std::vector<MetricPoint> points;
        std::vector<LogEntry> entries;
    };

    GuestPtr guest_of(const SandboxRecord& record);
    void start_due();
    boost::asio::awaitable<void> collect(GuestPtr guest);
    boost::asio::awaitable<void> collect_next(GuestPtr guest);  // after the one that is under way
    boost::asio::awaitable<void> find_last_entry(GuestPtr guest);
    void take(Guest& guest, const Telemetry& answer);
    void take_metrics(Guest& guest, const GuestMetrics& metrics);
    boost::asio::awaitable<void> flush();

    boost::asio::any_io_executor executor_;
    boost::asio::thread_pool& pool_;
    Sandboxes& sandboxes_;
    Store& store_;
    TelemetryOptions options_;
    std::unordered_map<std::string, GuestPtr> guests_;  // by sandbox id
    std::size_t in_flight_ = 0;                         // started by run()
    Batch pending_;
    bool writing_ = false;
    boost::asio::steady_timer written_;  // never expires; cancelled when a write is done
};

}  // namespace gb
