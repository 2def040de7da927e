// SPDX-License-Identifier: Apache-2.0
#include "control/webhooks.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/clock.h"
#include "base/error_tuple.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/offload.h"

namespace gb {

namespace asio = boost::asio;
using asio::awaitable;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kLongestSleep{60'000};  // the wall clock may be set
constexpr milliseconds kStorePause{5'000};     // after an error of the store

double chance() {
    const std::string bytes = random_bytes(2);
    return (static_cast<unsigned char>(bytes[0]) * 256 + static_cast<unsigned char>(bytes[1])) / 65536.0;
}

awaitable<void> sleep_on(asio::steady_timer& timer, milliseconds time) {
    timer.expires_after(time);
    co_await timer.async_wait(kErrorTuple);
}

}  // namespace

milliseconds retry_delay(const WebhookOptions& options, int attempts, double chance) {
    milliseconds delay = options.first_retry;
    for (int i = 1; i < attempts && delay < options.longest_retry; ++i) delay *= 2;
    delay = std::min(delay, options.longest_retry);
    return milliseconds(static_cast<std::int64_t>(static_cast<double>(delay.count()) * (0.8 + 0.4 * chance)));
}

bool is_given_up(const WebhookOptions& options, int attempts, std::int64_t event_ms, std::int64_t now_ms) {
    return attempts >= options.most_attempts || now_ms - event_ms >= options.give_up_after.count();
}

struct Webhooks::State : std::enable_shared_from_this<State> {
    struct Underway {
        std::string webhook_id, team_id, sandbox_id;
    };

    State(asio::any_io_executor on, Store& rows, asio::thread_pool& reads, WebhookOptions how)
        : executor(std::move(on)),
          store(rows),
          readers(reads),
          options(std::move(how)),
          sender(options.sender),
          senders(options.at_once),
          timer(executor) {}

    // Waits on the executor's thread only; the threads of `senders` see store, sender and options.
    asio::any_io_executor executor;
    Store& store;
    asio::thread_pool& readers;
    const WebhookOptions options;
    WebhookSender sender;
    asio::thread_pool senders;
    asio::steady_timer timer;
    bool woken = false;
    bool stopping = false;
    std::map<std::string, Underway> underway;  // by the id of the delivery
    std::set<std::string> ended;  // since the last look at the store, which may have seen them still

    void wake() {
        woken = true;
        timer.cancel();
    }

    std::size_t count(std::string Underway::* field, const std::string& value) const {
        return static_cast<std::size_t>(
            std::ranges::count_if(underway, [&](const auto& item) { return item.second.*field == value; }));
    }

    bool may_begin(const Delivery& delivery) const {
        const Webhook& webhook = delivery.webhook;
        if (underway.size() >= options.at_once || underway.contains(delivery.id) ||
            ended.contains(delivery.id))
            return false;
        if (count(&Underway::webhook_id, webhook.id) >= options.per_webhook) return false;
        if (count(&Underway::team_id, webhook.team_id) >= options.per_team) return false;
        return std::ranges::none_of(underway, [&](const auto& item) {
            return item.second.webhook_id == webhook.id &&
                   item.second.sandbox_id == delivery.event.sandbox_id;
        });
    }

    // Rows that cannot begin are not read: they would hide others. Of each webhook so many are read that one
    // is new, or waits for what is under way.
    DeliveryQuery query(std::int64_t now) const {
        DeliveryQuery out{.now_ms = now, .webhooks = options.at_once, .per_webhook = 2 * options.per_webhook};
        for (const auto& [id, item] : underway) {
            if (count(&Underway::webhook_id, item.webhook_id) >= options.per_webhook)
                out.not_webhooks.push_back(item.webhook_id);
            if (count(&Underway::team_id, item.team_id) >= options.per_team)
                out.not_teams.push_back(item.team_id);
        }
        return out;
    }

    // Begins what can begin now. How many that were.
    awaitable<Result<std::size_t>> begin_due(std::int64_t now) {
        if (underway.size() >= options.at_once) co_return 0U;
        ended.clear();
        const DeliveryQuery wanted = query(now);  // here, on the thread that `underway` belongs to
        GB_CO_TRY_ASSIGN(auto due, co_await offload(readers, [&] { return store.due_deliveries(wanted); }));
        std::size_t begun = 0;
        for (Delivery& delivery : due) {
            if (stopping || !may_begin(delivery)) continue;
            underway[delivery.id] = {delivery.webhook.id, delivery.webhook.team_id,
                                     delivery.event.sandbox_id};
            asio::co_spawn(executor, deliver(shared_from_this(), std::move(delivery)), asio::detached);
            ++begun;
        }
        co_return begun;
    }

    static awaitable<void> run(std::shared_ptr<State> self) {
        while (!self->stopping) {
            self->woken = false;
            const std::int64_t now = now_ms();
            auto begun = co_await self->begin_due(now);
            if (begun && *begun > 0) continue;  // what is left may belong to others now
            // All that is due waits for something under way, which wakes us.
            Result<std::optional<std::int64_t>> next = std::nullopt;
            if (begun)
                next = co_await offload(self->readers, [&] { return self->store.next_delivery_ms(now); });
            if (self->woken || self->stopping) continue;
            milliseconds pause = kLongestSleep;
            if (!begun || !next) {
                log::error("deliveries to webhooks were not read",
                           {{"error", begun ? next.error().message : begun.error().message}});
                pause = kStorePause;
            } else if (*next) {
                pause = std::clamp(milliseconds(**next - now_ms()), milliseconds(0), kLongestSleep);
            }
            co_await sleep_on(self->timer, pause);
        }
    }

    // On a thread of `senders`.
    Status record(const Delivery& delivery, const Attempt& attempt) {
        if (attempt.result == Attempt::Result::stopped) return {};
        if (attempt.result == Attempt::Result::delivered) {
            GB_TRY(store.finish_delivery(delivery.id));
            log::debug("webhook delivered", {{"webhook", delivery.webhook.id}, {"delivery", delivery.id}});
            return {};
        }
        const int attempts = delivery.attempts + 1;
        const std::int64_t now = now_ms();
        const bool over = is_given_up(options, attempts, delivery.event.time_ms, now);
        std::optional<std::int64_t> next;
        if (!over) next = now + retry_delay(options, attempts, chance()).count();
        GB_TRY(store.postpone_delivery(delivery.id, now, next, attempt.reason));
        log::write(over ? log::Level::warn : log::Level::info,
                   over ? "webhook given up" : "webhook failed and will be tried again",
                   {{"webhook", delivery.webhook.id},
                    {"delivery", delivery.id},
                    {"team", delivery.webhook.team_id},
                    {"event", delivery.event.type},
                    {"attempts", attempts},
                    {"reason", attempt.reason}});
        return {};
    }

    static awaitable<void> deliver(std::shared_ptr<State> self, Delivery delivery) {
        Attempt attempt;
        // Sent and recorded in one go, so that a stop between the two does not send it twice.
        Status recorded = co_await offload(self->senders, [&] {
            attempt = self->sender.send(delivery);
            return self->record(delivery, attempt);
        });
        asio::steady_timer pause(self->executor);
        while (!recorded && !self->stopping) {
            // It stays under way: sent again before it is recorded, it would be sent for ever.
            log::error("a delivery to a webhook was not recorded",
                       {{"delivery", delivery.id}, {"error", recorded.error().message}});
            co_await sleep_on(pause, kStorePause);
            recorded = co_await offload(self->senders, [&] { return self->record(delivery, attempt); });
        }
        self->underway.erase(delivery.id);
        self->ended.insert(delivery.id);
        self->wake();
    }
};

Webhooks::Webhooks(asio::any_io_executor executor, Store& store, asio::thread_pool& readers,
                   WebhookOptions options)
    : state_(std::make_shared<State>(std::move(executor), store, readers, std::move(options))) {}

Webhooks::~Webhooks() {
    stop();
    join();
}

void Webhooks::start() {
    asio::co_spawn(state_->executor, State::run(state_), asio::detached);
    // The store's threads hold no reference that could be the last one.
    state_->store.on_delivery([executor = state_->executor, weak = std::weak_ptr<State>(state_),
                               posted = std::make_shared<std::atomic<bool>>(false)] {
        if (posted->exchange(true)) return;
        asio::post(executor, [weak, posted] {
            *posted = false;
            if (auto state = weak.lock()) state->wake();
        });
    });
}

void Webhooks::stop() {
    if (state_->stopping) return;
    state_->stopping = true;
    state_->store.on_delivery({});
    state_->sender.stop();
    state_->wake();
}

void Webhooks::join() {
    state_->senders.join();
}

}  // namespace gb
