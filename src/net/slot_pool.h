// SPDX-License-Identifier: Apache-2.0
// Slots made ahead of time, so that a sandbox does not wait for one. A slot that was used is thrown away,
// never cleaned: nothing of one sandbox can reach the next.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"
#include "net/host_network.h"
#include "net/slot.h"

namespace gb::net {

struct SlotPoolOptions {
    std::size_t target = 8;  // slots kept ready; 0 makes each on demand
    SlotOptions slot;
};

struct SlotPoolStats {
    std::size_t ready = 0;
    std::uint64_t made = 0;  // in the background and on demand
    std::uint64_t taken = 0;
    std::uint64_t on_demand = 0;  // takes that found the pool empty
    std::uint64_t discarded = 0;
    std::uint64_t failed = 0;  // attempts to make one that met an error
};

class SlotPool {
  public:
    // `host` must outlive the pool. Its thread works in the namespace of the thread that calls this.
    SlotPool(HostNetwork& host, const SlotPoolOptions& options);
    ~SlotPool();  // as stop()
    SlotPool(const SlotPool&) = delete;
    SlotPool& operator=(const SlotPool&) = delete;

    // A fresh slot: at once, or made now when none is ready.
    Result<std::unique_ptr<Slot>> take();
    // Ends the life of a used slot, in the background.
    void discard(std::unique_ptr<Slot> slot);

    [[nodiscard]] SlotPoolStats stats() const;
    [[nodiscard]] const SlotOptions& slot_options() const { return slot_options_; }  // of all it makes
    void set_target(std::size_t target);  // slots beyond it are thrown away
    void stop();                          // ends the thread and all slots that are ready; twice is once

  private:
    void work();

    HostNetwork& host_;
    const SlotOptions slot_options_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::size_t target_;
    std::deque<std::unique_ptr<Slot>> ready_;
    std::vector<std::unique_ptr<Slot>> used_;
    SlotPoolStats stats_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace gb::net
