// SPDX-License-Identifier: Apache-2.0
// How long what is not running is kept. The decision is pure; the loop asks Sandboxes to act on it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "store/records.h"

namespace gb {

class Sandboxes;

struct Retention {
    std::int64_t paused_ms = 30LL * 24 * 3'600'000;     // from its pause; 0: for ever
    std::int64_t snapshots_ms = 30LL * 24 * 3'600'000;  // the same for snapshots
    std::int64_t warn_ms = 3LL * 24 * 3'600'000;        // so long before the end its team is told; 0: never
};

enum class Keeping { keep, warn, remove };

// What to do with a paused sandbox, or a snapshot that nobody uses. Nothing is removed without its warning and the whole time after it, also
// when the server was away at that time, or has got a shorter retention since.
Keeping keeping_of(const SandboxRecord& paused, const Retention& retention, std::int64_t now);
Keeping keeping_of(const BuildRecord& snapshot, const Retention& retention, std::int64_t now);
// When it is removed if it is warned of that at `warned_ms`; 0: without a warning.
std::int64_t removal_ms(const SandboxRecord& paused, const Retention& retention, std::int64_t warned_ms);
std::int64_t removal_ms(const BuildRecord& snapshot, const Retention& retention, std::int64_t warned_ms);

// How often to look: a tenth of the shortest time that matters, at least every hour.
std::chrono::milliseconds look_every(const Retention& retention);


// Looks at the paused sandboxes and the snapshots now and then, as their retention says. Goes on until it is cancelled.
boost::asio::awaitable<void> apply_retention(Sandboxes& sandboxes);

}  // namespace gb
