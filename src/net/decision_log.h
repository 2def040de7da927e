// SPDX-License-Identifier: Apache-2.0
// The decision log of one sandbox: a file of JSON lines that cannot fill the disk. When it reaches its limit
// it becomes "<path>.1", replacing an older one, and a new file begins.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/decision.h"

namespace gb::net {

struct LogPart {
    std::vector<std::string> lines;
    std::string next;  // for the following part
};
// At most `limit` lines that follow those of an earlier part; from the first that is kept when `after` is
// empty or what it points to is kept no more. invalid_argument for a text that is no position.
Result<LogPart> read_lines(const std::filesystem::path& log, std::string_view after, std::size_t limit);

// Moves a log, with its older part, to where it can be read as before. Success where there is none.
Status move_log(const std::filesystem::path& from, const std::filesystem::path& to);

class DecisionLog {
  public:
    static constexpr std::size_t kDefaultLimit = 16UL << 20;

    // Appends to a log that exists. Use by one thread at a time.
    static Result<DecisionLog> open(std::filesystem::path path, std::size_t limit = kDefaultLimit);

    Status append(std::span<const Decision> decisions);

    // Says how many decisions have no line: beyond the rate, lost, or not writable. `total` is what
    // Slot::suppressed() counts; a line is written when it has grown since the last call.
    Status note_suppressed(std::uint64_t total);
    // For a log that goes on: `total` has been said, or was counted while nobody wrote.
    void suppressed_before(std::uint64_t total) { suppressed_ = total; }

  private:
    DecisionLog(std::filesystem::path path, std::size_t limit, UniqueFd fd, std::size_t size)
        : path_(std::move(path)), limit_(limit), fd_(std::move(fd)), size_(size) {}
    Status write(std::string_view lines, std::uint64_t count);
    Status rotate();

    std::filesystem::path path_;
    std::size_t limit_;
    UniqueFd fd_;
    std::size_t size_;
    std::uint64_t suppressed_ = 0;  // as last noted
    std::uint64_t unwritten_ = 0;   // lines that met an error, not yet noted
};

}  // namespace gb::net
