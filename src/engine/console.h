// SPDX-License-Identifier: Apache-2.0
// Keeps the end of what many programs print. A guest may print for ever: what is kept is bounded in memory,
// what is read is bounded per unit of time, and nothing of it reaches the disk. A writer that is faster than
// that waits.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb::engine {

class ConsoleReader;

// The last bytes of one stream. Reading ends with the destructor.
class ConsoleTail {
  public:
    ~ConsoleTail();
    ConsoleTail(const ConsoleTail&) = delete;
    ConsoleTail& operator=(const ConsoleTail&) = delete;

    [[nodiscard]] std::string text() const;  // raw bytes of the guest: escape before showing
    [[nodiscard]] std::uint64_t bytes() const;  // that have come, kept or not
    // True when `needle` is in what is kept; waits for it until the limit or the end of the stream.
    [[nodiscard]] bool wait_for(std::string_view needle, std::chrono::milliseconds limit) const;
    // True when the stream ended within the limit; then nothing more can come.
    bool wait_end(std::chrono::milliseconds limit) const;

  private:
    friend class ConsoleReader;
    struct Stream;
    ConsoleTail(ConsoleReader& reader, std::shared_ptr<Stream> stream);
    ConsoleReader& reader_;
    std::shared_ptr<Stream> stream_;
};

// One thread that reads all streams. Must outlive its tails.
class ConsoleReader {
  public:
    static constexpr std::size_t kKeepBytes = 64 * 1024;

    ConsoleReader();
    ~ConsoleReader();
    ConsoleReader(const ConsoleReader&) = delete;
    ConsoleReader& operator=(const ConsoleReader&) = delete;

    // Takes the reading end of a pipe.
    Result<std::unique_ptr<ConsoleTail>> follow(UniqueFd pipe, std::size_t keep_bytes = kKeepBytes);

  private:
    friend class ConsoleTail;
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace gb::engine
