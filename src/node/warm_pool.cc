// SPDX-License-Identifier: Apache-2.0
#include "node/warm_pool.h"

#include <algorithm>
#include <ranges>

#include "base/log.h"

namespace gb {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kFirstPause = 1s;
constexpr std::chrono::milliseconds kLongestPause = 60s;
constexpr std::chrono::milliseconds kHold = 10s;  // after some were given up for want of memory
constexpr std::chrono::milliseconds kTick =
    1s;  // for builds, dead machines, memory and what is no longer wanted

}  // namespace

WarmPool::WarmPool(WarmOptions options, WarmPoolParts parts)
    : options_(std::move(options)), parts_(std::move(parts)) {
    if (options_.any()) thread_ = std::jthread([this](const std::stop_token& over) { work(over); });
}

WarmPool::~WarmPool() {
    stop();
}

WarmPool::Creating::Creating(WarmPool& pool, std::uint64_t memory_mib)
    : pool_(pool), memory_mib_(memory_mib) {
    std::lock_guard lock(pool_.mutex_);
    ++pool_.creating_;
    pool_.creating_mib_ += memory_mib_;
}

WarmPool::Creating::~Creating() {
    std::lock_guard lock(pool_.mutex_);
    --pool_.creating_;
    pool_.creating_mib_ -= memory_mib_;
    pool_.quiet_until_ = pool_.parts_.now() + pool_.parts_.quiet;
    pool_.change();
}

void WarmPool::change() {
    changed_ = true;
    wake_.notify_one();
}

std::unique_ptr<WarmMachine> WarmPool::take(const WarmTemplate& of) {
    const Time now = parts_.now();
    std::lock_guard lock(mutex_);
    if (stopped_ || options_.of(of.name).most == 0) return nullptr;
    Shelf& shelf = shelves_[of.name];
    shelf.demand.add(now);
    change();
    while (!shelf.waiting.empty()) {
        Waiting first = std::move(shelf.waiting.front());
        shelf.waiting.pop_front();
        const bool alive = first.machine->alive();
        if (first.build_id == of.build_id && alive) {
            shelf.pause = {};
            return std::move(first.machine);
        }
        if (!alive) shelf.back_off(now);
        waste_.push_back(std::move(first.machine));
    }
    return nullptr;
}

bool WarmPool::give_up() {
    const Time now = parts_.now();
    std::unique_ptr<WarmMachine> given;
    {
        std::lock_guard lock(mutex_);
        held_until_ = now + kHold;
        Shelf* least = nullptr;
        for (Shelf& shelf : shelves_ | std::views::values)
            if (!shelf.waiting.empty() && (least == nullptr || shelf.demand.at(now) < least->demand.at(now)))
                least = &shelf;
        if (least == nullptr) return false;
        given = std::move(least->waiting.front().machine);
        least->waiting.pop_front();
    }
    return true;  // ended by now
}

std::map<std::string, std::size_t> WarmPool::waiting() const {
    std::lock_guard lock(mutex_);
    std::map<std::string, std::size_t> out;
    for (const auto& [name, shelf] : shelves_) out.emplace(name, shelf.waiting.size());
    return out;
}

void WarmPool::look() {
    std::lock_guard lock(mutex_);
    change();
}

void WarmPool::stop() {
    {
        std::lock_guard lock(mutex_);
        stopped_ = true;
    }
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
    std::map<std::string, Shelf> shelves;
    Machines waste;
    std::lock_guard lock(mutex_);  // goes before the machines do
    shelves.swap(shelves_);
    waste.swap(waste_);
}

void WarmPool::Shelf::back_off(Time now) {
    if (now < next_attempt) return;  // several at once are one failure
    pause = std::clamp(pause * 2, kFirstPause, kLongestPause);
    next_attempt = now + pause;
}

std::size_t WarmPool::wanted(const std::string& name, const Shelf& shelf, Time now) const {
    return warm_wanted(shelf.demand.at(now), options_.of(name));
}

void WarmPool::sort_out(const std::vector<WarmTemplate>& templates, Time now) {
    for (const WarmTemplate& known : templates)
        if (options_.of(known.name).least > 0) shelves_.try_emplace(known.name);
    for (auto& [name, shelf] : shelves_) {
        auto newest = std::ranges::find(templates, name, &WarmTemplate::name);
        std::size_t most = newest == templates.end() ? 0 : wanted(name, shelf, now);
        std::deque<Waiting> kept;
        for (Waiting& one : shelf.waiting) {
            const bool current = newest != templates.end() && one.build_id == newest->build_id;
            const bool alive = one.machine->alive();
            if (!alive) {
                shelf.back_off(now);
                log::warn("a warm sandbox has ended",
                          {{"template", name}, {"next_try_ms", shelf.pause.count()}});
            }
            if (current && alive && kept.size() < most) {
                kept.push_back(std::move(one));
            } else {
                waste_.push_back(std::move(one.machine));
            }
        }
        shelf.waiting = std::move(kept);
    }
}

std::optional<WarmTemplate> WarmPool::next_to_make(const std::vector<WarmTemplate>& templates,
                                                   std::uint64_t available_mib, Time now) const {
    if (creating_ > 0 || now < quiet_until_ || now < held_until_) return std::nullopt;
    const WarmTemplate* next = nullptr;
    std::size_t most_missing = 0;
    for (const WarmTemplate& one : templates) {
        auto shelf = shelves_.find(one.name);
        if (shelf == shelves_.end() || now < shelf->second.next_attempt) continue;
        if (available_mib <= one.memory_mib + creating_mib_) continue;
        const std::size_t want = wanted(one.name, shelf->second, now), have = shelf->second.waiting.size();
        if (want <= have || want - have <= most_missing) continue;
        most_missing = want - have;
        next = &one;
    }
    return next == nullptr ? std::nullopt : std::optional(*next);
}

// Until the thread is to look again; nothing: until somebody calls.
std::optional<std::chrono::milliseconds> WarmPool::nap(Time now) const {
    const bool may_change =
        options_.standard.least > 0 ||
        std::ranges::any_of(options_.templates | std::views::values,
                            [](const WarmLimits& limits) { return limits.least > 0; }) ||
        std::ranges::any_of(shelves_, [&](const auto& entry) {
            return !entry.second.waiting.empty() || wanted(entry.first, entry.second, now) > 0;
        });
    if (!may_change) return std::nullopt;
    if (creating_ == 0 && now < quiet_until_)
        return std::min(kTick, std::chrono::ceil<std::chrono::milliseconds>(quiet_until_ - now));
    return kTick;
}

void WarmPool::work(const std::stop_token& over) {
    std::unique_lock lock(mutex_);
    while (!over.stop_requested()) {
        changed_ = false;
        lock.unlock();
        auto templates = parts_.templates();
        auto available = parts_.available_mib();
        const Time now = parts_.now();
        lock.lock();
        if (!templates) templates = std::vector<WarmTemplate>();  // none can be made, and none handed over
        sort_out(*templates, now);
        if (!waste_.empty()) {
            Machines waste = std::move(waste_);
            waste_.clear();
            lock.unlock();
            waste.clear();
            lock.lock();
            continue;
        }
        if (auto next = next_to_make(*templates, available.value_or(0), now)) {
            refill(*next, over, lock);
            continue;
        }
        const auto changed = [this] { return changed_; };
        if (const auto limit = nap(now)) {
            wake_.wait_for(lock, over, *limit, changed);
        } else {
            wake_.wait(lock, over, changed);
        }
    }
}

void WarmPool::refill(const WarmTemplate& of, const std::stop_token& over,
                      std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    auto made = parts_.make(of, over);
    lock.lock();
    Shelf& shelf = shelves_[of.name];
    if (made) {
        shelf.waiting.push_back({of.build_id, *std::move(made)});
        return;
    }
    if (over.stop_requested()) return;  // it was told to give up
    shelf.back_off(parts_.now());
    log::warn("cannot make a warm sandbox",
              {{"template", of.name}, {"error", made.error().message}, {"next_try_ms", shelf.pause.count()}});
}

}  // namespace gb
