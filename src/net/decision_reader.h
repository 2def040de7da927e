// SPDX-License-Identifier: Apache-2.0
// Decisions of the packet rules of one network namespace, as the kernel reports them (NFLOG).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/decision.h"

namespace gb::net {

class DecisionReader {
  public:
    // Binds `group` in the namespace of the calling thread: one reader a group, a second one is refused. The
    // reader holds the namespace alive.
    static Result<DecisionReader> open(std::uint16_t group);

    // Readable when decisions wait; for poll and epoll, never to be read by others.
    [[nodiscard]] int fd() const { return fd_.get(); }

    // What waits, at most about `most`; never blocks. Call again while it returns something.
    std::vector<Decision> read(std::size_t most = 256);

    // Decisions that were made and could not be delivered, because nobody read in time. Grows only.
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

  private:
    explicit DecisionReader(UniqueFd fd);
    UniqueFd fd_;
    std::vector<char> buffer_;
    std::uint32_t next_sequence_ = 0;
    std::uint64_t lost_ = 0;
};

}  // namespace gb::net
