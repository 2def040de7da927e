// SPDX-License-Identifier: Apache-2.0
// What happened in the sandbox, for the control plane to fetch: a bounded ring of entries, the oldest dropped
// first. It never holds what a program reads, writes or has in its environment.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gb::agent {

// `text` in at most `limit` bytes, cut between two characters and then ending in "…".
std::string shortened(std::string_view text, std::size_t limit);

class TelemetryLog {
  public:
    static constexpr std::size_t kMaxEntries = 5000;
    static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;     // of all entries as JSON
    static constexpr std::size_t kMaxAnswer = std::size_t{256} << 10;  // bytes of the entries of one answer
    static constexpr std::size_t kMaxText = 1024;  // bytes of a message or a field; longer ones are cut

    enum class Level { info, warn, error };
    // Names are the caller's literals. "logger" says which part of the agent writes.
    using Fields = std::vector<std::pair<std::string_view, std::string>>;

    // Stamped with the wall clock of now.
    void add(Level level, std::string_view logger, std::string_view message, const Fields& fields);

    // For a new identity: what a snapshot remembers happened to another sandbox, at another time. Sequences
    // begin again.
    void restart();

    struct Page {
        std::string entries;        // a JSON array, oldest first
        std::uint64_t next = 0;     // to ask for what follows
        std::uint64_t dropped = 0;  // entries after the sequence asked for that are gone
        bool more = false;
    };
    [[nodiscard]] Page after(std::uint64_t sequence) const;

    [[nodiscard]] std::size_t entries() const { return ring_.size(); }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

  private:
    std::deque<std::string> ring_;  // of sequences last_ - size + 1 to last_
    std::size_t bytes_ = 0;
    std::uint64_t last_ = 0;
};

}  // namespace gb::agent
