// SPDX-License-Identifier: Apache-2.0
// What the sandboxes and snapshots of each team take of the disk.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/result.h"
#include "node/node.h"
#include "store/store.h"

namespace gb {

struct SandboxDisk {
    std::string id, template_name;
    bool running = false;  // otherwise paused
    std::uint64_t bytes = 0;
};

struct TeamDisk {
    Team team;
    std::size_t running = 0, paused = 0;  // sandboxes
    std::uint64_t running_bytes = 0, paused_bytes = 0;
    std::size_t snapshots = 0;
    std::uint64_t snapshot_bytes = 0;
    [[nodiscard]] std::uint64_t bytes() const { return running_bytes + paused_bytes + snapshot_bytes; }
    std::vector<SandboxDisk> largest;  // the largest first
};

inline constexpr std::size_t kLargestSandboxes = 20;  // of a team, that are named

// One row a team, those without sandboxes too, in the order of `teams`. What the node holds and no row knows
// is left out. Pure.
std::vector<TeamDisk> disk_by_team(std::span<const Team> teams, std::span<const SandboxRecord> sandboxes,
                                   const TemplateRows& templates, std::span<const DiskUse> uses);

// Reads it, on the threads of a pool. Lives on one executor; several that ask at once share one look at the
// disk.
class DiskUsage {
  public:
    DiskUsage(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool, Store& store,
              Node& node);

    using Rows = std::shared_ptr<const std::vector<TeamDisk>>;
    // As it is, or as it was at most so long ago. Not to be cancelled: others wait for the same look.
    boost::asio::awaitable<Result<Rows>> read(std::chrono::milliseconds max_age);

  private:
    boost::asio::thread_pool& pool_;
    Store& store_;
    Node& node_;
    boost::asio::steady_timer done_;  // never expires; cancelled when a look is over
    bool looking_ = false;
    Rows rows_;
    std::int64_t begun_ms_ = 0;  // when the look began that `rows_` is from, monotonic
};

}  // namespace gb
