// SPDX-License-Identifier: Apache-2.0
// Sandboxes that are restored already and wait, their processors stopped, until somebody wants one: which
// there are, and when to make more or to give some up. Knows nothing of machines: they come from a factory.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "net/policy.h"
#include "node/node.h"
#include "node/warm_demand.h"

namespace gb {

class SandboxMachine;

// What can be kept warm: one build of a template.
struct WarmTemplate {
    std::string name;
    std::string build_id;
    std::uint64_t memory_mib = 0;
};

// One that waits. Belongs to nobody; its destructor ends it, and blocks for that.
class WarmMachine {
  public:
    virtual ~WarmMachine() = default;
    [[nodiscard]] virtual bool alive() const = 0;
    // Makes it the sandbox of `spec`; blocks until its guest has taken that identity. On an error nothing of
    // it is left. Called at most once.
    virtual Result<std::shared_ptr<SandboxMachine>> hand_over(const SandboxSpec& spec,
                                                              net::EgressPolicy policy) = 0;
};

struct WarmPoolParts {
    // The newest build of each template that machines can be made of.
    std::function<Result<std::vector<WarmTemplate>>()> templates;
    // Makes one and blocks; may give up with an error as soon as `over` is requested.
    std::function<Result<std::unique_ptr<WarmMachine>>(const WarmTemplate& of, std::stop_token over)> make;
    // Of the host, without what stays reserved for it.
    std::function<Result<std::uint64_t>()> available_mib;
    std::function<std::chrono::steady_clock::time_point()> now = [] {
        return std::chrono::steady_clock::now();
    };
    // None is made so soon after a create: its client is at work, and has the machine for itself.
    std::chrono::milliseconds quiet{100};
};

// Refills in the background, one at a time, by a thread of its own that sleeps while there is nothing to
// keep. Creates go first: while one is under way, none is begun. Safe to use from any thread.
class WarmPool {
  public:
    WarmPool(WarmOptions options, WarmPoolParts parts);  // without a thread when nothing may be kept
    ~WarmPool();                                         // as stop()
    WarmPool(const WarmPool&) = delete;
    WarmPool& operator=(const WarmPool&) = delete;

    // To be held while a sandbox is made or resumed, with the memory that it may need.
    class [[nodiscard]] Creating {
      public:
        Creating(WarmPool& pool, std::uint64_t memory_mib);
        ~Creating();
        Creating(const Creating&) = delete;
        Creating& operator=(const Creating&) = delete;

      private:
        WarmPool& pool_;
        std::uint64_t memory_mib_;
    };

    // One of exactly this build, if one waits. Counts as use of the template either way.
    std::unique_ptr<WarmMachine> take(const WarmTemplate& of);

    // Ends one to make room, of the template that is used least; blocks. False when none waits. None is made
    // for a while then.
    bool give_up();

    // How many wait, by the names of templates that were ever used.
    [[nodiscard]] std::map<std::string, std::size_t> waiting() const;

    void look();  // at templates, memory and clock, now
    void
    stop();  // ends all that wait, and the thread; waits for a machine that is being made. Twice is once.

  private:
    using Time = std::chrono::steady_clock::time_point;
    using Machines = std::vector<std::unique_ptr<WarmMachine>>;
    struct Waiting {
        std::string build_id;
        std::unique_ptr<WarmMachine> machine;
    };
    struct Shelf {
        WarmDemand demand;
        std::deque<Waiting> waiting;         // oldest first
        std::chrono::milliseconds pause{0};  // after the last failure since one was handed out
        Time next_attempt{};
        void back_off(Time now);
    };

    void work(const std::stop_token& over);
    void refill(const WarmTemplate& of, const std::stop_token& over, std::unique_lock<std::mutex>& lock);
    [[nodiscard]] std::size_t wanted(const std::string& name, const Shelf& shelf, Time now) const;
    // These are called with the lock held.
    void sort_out(const std::vector<WarmTemplate>& templates, Time now);
    [[nodiscard]] std::optional<WarmTemplate> next_to_make(const std::vector<WarmTemplate>& templates,
                                                           std::uint64_t available_mib, Time now) const;
    [[nodiscard]] std::optional<std::chrono::milliseconds> nap(Time now) const;
    void change();

    const WarmOptions options_;
    const WarmPoolParts parts_;
    mutable std::mutex mutex_;
    std::condition_variable_any wake_;
    bool changed_ = true;
    std::map<std::string, Shelf> shelves_;  // by template's name
    Machines waste_;                        // to be ended by the thread
    std::size_t creating_ = 0;
    std::uint64_t creating_mib_ = 0;
    Time quiet_until_{};
    Time held_until_{};
    bool stopped_ = false;
    std::jthread thread_;
};

}  // namespace gb
