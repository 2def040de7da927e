// SPDX-License-Identifier: Apache-2.0
// A limit on waiting that tells slow from broken: it counts only the time in which nothing moves. Beside it there is a
// ceiling, for what moves for ever and gets nowhere.
//
// Who waits looks about once a second: it tells the limit what moved, and asks whether the wait is over. Time in which
// nobody looked counts as one short step, for then the one who waits stood still himself.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace gb {

struct Patience {
    std::chrono::milliseconds still{};    // so long nothing at all may move
    std::chrono::milliseconds ceiling{};  // so long the whole may take, whatever moves

    constexpr Patience(std::chrono::milliseconds still_for, std::chrono::milliseconds at_most)
        : still(still_for), ceiling(at_most) {}
    // A fixed limit, whatever moves: for what has another way out when it takes too long.
    template <class Rep, class Period>
    constexpr Patience(std::chrono::duration<Rep, Period> fixed)
        : still(std::chrono::duration_cast<std::chrono::milliseconds>(fixed)), ceiling(still) {}
};

class StallLimit {
  public:
    using Clock = std::function<std::int64_t()>;  // milliseconds, never goes back

    explicit StallLimit(const Patience& patience, Clock clock = monotonic_ms);

    // Something got on.
    void moved();
    // A counter, or the hash of a text: moves when it differs from the last one of that name.
    void watch(std::string_view name, std::uint64_t value);

    [[nodiscard]] bool over();
    // How long to wait until the next look: at most `step`, and no longer than what is left.
    [[nodiscard]] std::chrono::milliseconds next_look(std::chrono::milliseconds step = std::chrono::seconds(1));

    // Why the wait is over; deadline_exceeded. `what` was waited for.
    [[nodiscard]] std::unexpected<Error> error(std::string_view what);

  private:
    void look();

    Patience patience_;
    Clock clock_;
    std::int64_t begun_, looked_, still_ = 0;
    std::map<std::string, std::uint64_t, std::less<>> seen_;
};

// What shows, from outside, that somebody is getting on: called at each look, may tell the limit of movement. An error
// ends the wait at once: there is nobody any more.
using Signs = std::function<Status(StallLimit&)>;

}  // namespace gb
