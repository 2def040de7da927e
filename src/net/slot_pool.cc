// SPDX-License-Identifier: Apache-2.0
#include "net/slot_pool.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"

namespace gb::net {
namespace {

constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{10'000};

}  // namespace

SlotPool::SlotPool(HostNetwork& host, const SlotPoolOptions& options)
    : host_(host), slot_options_(options.slot), target_(options.target), thread_([this] { work(); }) {}

SlotPool::~SlotPool() {
    stop();
}

void SlotPool::work() {
    // After a failure the pool waits longer and longer, but still throws used slots away at once.
    using Clock = std::chrono::steady_clock;
    std::chrono::milliseconds pause = kFirstPause;
    Clock::time_point next_attempt = Clock::now();
    std::unique_lock lock(mutex_);
    auto has_waste = [this] { return !used_.empty() || ready_.size() > target_; };
    while (!stopping_) {
        if (has_waste()) {
            std::vector<std::unique_ptr<Slot>> waste = std::move(used_);
            used_.clear();
            while (ready_.size() > target_) {
                waste.push_back(std::move(ready_.back()));
                ready_.pop_back();
            }
            lock.unlock();
            waste.clear();
            lock.lock();
        } else if (ready_.size() == target_) {
            wake_.wait(lock);
        } else if (Clock::now() < next_attempt) {
            wake_.wait_until(lock, next_attempt);
        } else {
            lock.unlock();
            auto slot = Slot::create(host_, slot_options_);
            lock.lock();
            if (slot) {
                ++stats_.made;
                ready_.push_back(std::move(*slot));
                pause = kFirstPause;
                continue;
            }
            ++stats_.failed;
            log::warn("cannot make a network slot ahead of time",
                      {{"error", slot.error().message}, {"next_try_ms", pause.count()}});
            next_attempt = Clock::now() + pause;
            pause = std::min(pause * 2, kLongestPause);
        }
    }
}

Result<std::unique_ptr<Slot>> SlotPool::take() {
    {
        std::lock_guard lock(mutex_);
        ++stats_.taken;
        if (!ready_.empty()) {
            std::unique_ptr<Slot> slot = std::move(ready_.front());
            ready_.pop_front();
            wake_.notify_one();
            return slot;
        }
        ++stats_.on_demand;
    }
    auto slot = Slot::create(host_, slot_options_);
    std::lock_guard lock(mutex_);
    ++(slot ? stats_.made : stats_.failed);
    return slot;
}

void SlotPool::discard(std::unique_ptr<Slot> slot) {
    if (!slot) return;
    std::lock_guard lock(mutex_);
    ++stats_.discarded;
    if (stopping_) return;  // the slot ends here
    used_.push_back(std::move(slot));
    wake_.notify_one();
}

SlotPoolStats SlotPool::stats() const {
    std::lock_guard lock(mutex_);
    SlotPoolStats out = stats_;
    out.ready = ready_.size();
    return out;
}

void SlotPool::set_target(std::size_t target) {
    std::lock_guard lock(mutex_);
    target_ = target;
    wake_.notify_one();
}

void SlotPool::stop() {
    {
        std::lock_guard lock(mutex_);
        stopping_ = true;
        wake_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
    std::lock_guard lock(mutex_);
    ready_.clear();
    used_.clear();
}

}  // namespace gb::net
