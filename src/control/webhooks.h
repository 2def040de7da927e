// SPDX-License-Identifier: Apache-2.0
// Tells webhooks what happened to sandboxes (contract 7.10). Deliveries are rows of the store, so they
// outlive a restart; one that a crash interrupts is sent again, with the same delivery id.
//
// Of each webhook the oldest goes first, and never two of one sandbox at a time. One that failed comes again
// later and holds no other up: after a failure a receiver finds the order in the timestamps.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include "control/webhook_sender.h"
#include "store/store.h"

namespace gb {

struct WebhookOptions {
    WebhookSenderOptions sender;
    std::size_t at_once = 16;  // attempts under way, of everybody
    std::size_t per_team = 8;  // of one team, so that slow receivers of one do not hold up another's
    std::size_t per_webhook = 2;
    std::chrono::milliseconds first_retry{1'000};  // doubled with each failure
    std::chrono::milliseconds longest_retry{3'600'000};
    int most_attempts = 20;
    std::chrono::milliseconds give_up_after{24 * 3'600'000};  // from the event on; everything is tried once
};

// How long to wait after the `attempts`-th failure; `chance` in [0, 1) moves it by up to a fifth, so that
// what failed together does not come back together.
std::chrono::milliseconds retry_delay(const WebhookOptions& options, int attempts, double chance);
bool is_given_up(const WebhookOptions& options, int attempts, std::int64_t event_ms, std::int64_t now_ms);

class Webhooks {
  public:
    // `executor` must run on one thread, on which start() and stop() are called; `readers` is for reads of
    // the store. Attempts have threads of their own.
    Webhooks(boost::asio::any_io_executor executor, Store& store, boost::asio::thread_pool& readers,
             WebhookOptions options);
    ~Webhooks();  // stops and joins
    Webhooks(const Webhooks&) = delete;
    Webhooks& operator=(const Webhooks&) = delete;

    // Begins with what is due, and is woken by what happens from now on.
    void start();
    // Nothing new begins; what is under way is given up and comes again after the next start.
    void stop();
    // Waits for the threads, about a second after stop(). Before the store goes away.
    void join();

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace gb
