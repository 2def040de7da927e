// One sandbox in memory; shared by the files of Sandboxes, nobody else's business.
#pragma once

#include <limits>

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

    [[nodiscard]] bool move_to(SandboxState next) {
        if (!may_move(record.state, next)) return false;
        *places += (takes_place(next) ? 1 : 0) - (takes_place(record.state) ? 1 : 0);
        record.state = next;
        changed.cancel();
        return true;
    }
};

inline std::unexpected<Error> no_such_sandbox(std::string_view id) {
    return fail(ErrorCode::not_found,
                "Sandbox \"" + std::string(id) + "\" doesn't exist or you don't have access to it");
}

}  // namespace gb
