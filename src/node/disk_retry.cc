// SPDX-License-Identifier: Apache-2.0
#include "node/disk_retry.h"

#include <chrono>
#include <mutex>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/log.h"

namespace gb {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds kEvery{1};

}  // namespace

struct DiskRetry::State {
    State(asio::any_io_executor executor, asio::thread_pool& to_work_on, Machines all)
        : timer(std::move(executor)), pool(to_work_on), machines(std::move(all)) {}

    asio::steady_timer timer;
    asio::thread_pool& pool;
    Machines machines;
    std::mutex working;
    bool over = false;          // under the lock
    bool disk_is_full = false;  // so that it is said once

    void work() {
        std::lock_guard lock(working);
        if (over) return;
        std::size_t waiting = 0;
        for (const auto& machine : machines()) waiting += machine->retry_full_disk() ? 1 : 0;
        if ((waiting > 0) == disk_is_full) return;
        disk_is_full = waiting > 0;
        if (disk_is_full)
            log::error("the disk is full: sandboxes wait for room to write", {{"sandboxes", waiting}});
        else
            log::info("sandboxes that waited for room on the disk go on");
    }
};

DiskRetry::DiskRetry(asio::any_io_executor executor, asio::thread_pool& pool, Machines machines)
    : state_(std::make_shared<State>(std::move(executor), pool, std::move(machines))) {
    wait(state_);
}

DiskRetry::~DiskRetry() {
    state_->timer.cancel();
    std::lock_guard lock(state_->working);
    state_->over = true;
}

void DiskRetry::wait(const std::shared_ptr<State>& state) {
    state->timer.expires_after(kEvery);
    state->timer.async_wait([weak = std::weak_ptr(state)](const boost::system::error_code& ec) {
        const auto alive = weak.lock();
        if (ec || !alive) return;
        asio::post(alive->pool, [weak] {
            const auto still = weak.lock();
            if (!still) return;
            still->work();
            asio::post(still->timer.get_executor(), [weak] {
                if (const auto again = weak.lock()) wait(again);
            });
        });
    });
}

}  // namespace gb
