// SPDX-License-Identifier: Apache-2.0
// What travels through the pipes of a PipedKernel: requests to bytes, lines to messages. One for each way of
// speaking.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "guest/interpreter/hidden_call.h"
#include "guest/interpreter/jupyter_message.h"

namespace gb::interpreter {

struct PipeRequest {
    std::string id;
    std::string code;                // of a cell
    std::string language;            // of a cell
    int count = 0;                   // of a cell: its number
    std::optional<HiddenCall> call;  // instead of a cell
};

// One line of a kernel's answers, understood.
struct PipeAnswer {
    enum class Kind { ready, started, message };
    Kind kind = Kind::message;
    std::vector<Message> messages;  // for Kind::message
};

class PipeCodec {
  public:
    virtual ~PipeCodec() = default;
    // The bytes for the request pipe.
    virtual Result<std::string> encode(const PipeRequest& request) = 0;
    // invalid_argument when the line is nothing that this kernel says.
    virtual Result<PipeAnswer> decode(std::string_view line) = 0;
    // Whether a process that ends with an exit code in the middle of a cell is the cell's wish.
    [[nodiscard]] virtual bool exit_ends_cell() const = 0;
    // Whether a line feed at the end of output is a message of its own.
    [[nodiscard]] virtual bool line_feeds_apart() const { return false; }
    // Whether SIGINT may be sent before the kernel has said that it started on the request.
    [[nodiscard]] virtual bool interruptible_at_once() const = 0;
};

// The last messages about a request.
std::vector<Message> finished_messages(const std::string& request_id, bool ok, bool asked_to_exit = false);
Message error_message(const std::string& request_id, std::string_view name, std::string_view value);

}  // namespace gb::interpreter
