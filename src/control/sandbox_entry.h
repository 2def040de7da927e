// SPDX-License-Identifier: Apache-2.0
// One sandbox in memory; shared by the files of Sandboxes, nobody else's business.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>

#include <boost/asio/steady_timer.hpp>

#include "control/lifecycle.h"
#include "control/sandboxes.h"

namespace gb {

struct Sandboxes::Entry {
    Entry(const boost::asio::any_io_executor& executor, SandboxRecord r, std::shared_ptr<int> team_places)
        : record(std::move(r)),
          deadline(executor),
          changed(executor, boost::asio::steady_timer::time_point::max()),
          places(std::move(team_places)) {
        if (takes_place(record.state)) ++*places;
    }

    SandboxRecord record;
    SandboxRun run;                    // the current one, the last one while paused
    std::string access_token;   // empty: not secured
    std::string traffic_token;  // empty: public
    boost::asio::steady_timer deadline;
    boost::asio::steady_timer changed;  // never expires; cancelled at every change of state, for those who wait
    std::shared_ptr<int> places;        // how many the team has taken, over all of its sandboxes
    bool being_copied = false;          // for a snapshot or forks; it runs on
    bool exited_early = false;          // its machine ended while it was being paused or resumed
    std::uint64_t next_ticket = 0, turn = 0;  // of those who want to change its row, in the order of asking

    [[nodiscard]] bool move_to(SandboxState next) {
        if (!may_move(record.state, next)) return false;
        *places += (takes_place(next) ? 1 : 0) - (takes_place(record.state) ? 1 : 0);
        record.state = next;
        changed.cancel();
        return true;
    }
};

// The right to change the row of a sandbox, or to begin a pause or resume: rows are written as a whole, so
// two who write at once would undo each other's change. Ending a sandbox needs none.
class Sandboxes::Turn {
  public:
    explicit Turn(EntryPtr entry) : entry_(std::move(entry)) {}
    ~Turn() { release(); }
    Turn(Turn&& other) noexcept : entry_(std::move(other.entry_)) {}
    Turn& operator=(Turn&&) = delete;
    void release() {
        if (!entry_) return;
        ++entry_->turn;
        entry_->changed.cancel();
        entry_.reset();
    }

  private:
    EntryPtr entry_;
};

inline std::unexpected<Error> no_such_sandbox(std::string_view id) {
    return fail(ErrorCode::not_found,
                "Sandbox \"" + std::string(id) + "\" doesn't exist or you don't have access to it");
}

}  // namespace gb
