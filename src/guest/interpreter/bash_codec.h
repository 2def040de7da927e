// SPDX-License-Identifier: Apache-2.0
// How Bash is spoken to: it reads one line for each request from its standard input, and glovebox.bash
// (folder kernel/) says in the answers' pipe when it starts on it and with what status it ended. The code
// itself lies in a file: Bash reads a pipe byte by byte.
//
//   from it         "ready", "started <id>", "done <id> <status>"
#pragma once

#include <filesystem>
#include <map>

#include "guest/interpreter/pipe_codec.h"

namespace gb::interpreter {

class BashCodec : public PipeCodec {
  public:
    // Code goes to files in `folder`.
    explicit BashCodec(std::filesystem::path folder) : folder_(std::move(folder)) {}

    Result<std::string> encode(const PipeRequest& request) override;
    Result<PipeAnswer> decode(std::string_view line) override;
    [[nodiscard]] bool exit_ends_cell() const override { return true; }
    // What Bash has read of a line is thrown away by SIGINT.
    [[nodiscard]] bool interruptible_at_once() const override { return false; }

  private:
    std::filesystem::path folder_;
    std::map<std::string, bool, std::less<>> pending_;  // by id: whether it is a cell
};

// `text` as one word of Bash.
std::string bash_quoted(std::string_view text);
// The call as a line of Bash: a function of glovebox.bash with its words.
std::string bash_code(const HiddenCall& call);

}  // namespace gb::interpreter
