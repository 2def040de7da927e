// SPDX-License-Identifier: Apache-2.0
// Turns what a kernel says about one execute_request into the lines the client reads. Pure: messages in,
// lines out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "guest/interpreter/jupyter_message.h"

namespace gb::interpreter {

class Execution {
  public:
    // `request_id` is the msg_id of the execute_request; messages of other requests are ignored.
    explicit Execution(std::string request_id) : request_id_(std::move(request_id)) {}

    // The lines that this message causes, none for most. Never the end_of_execution line.
    std::vector<std::string> feed(const Message& message);

    // The kernel has replied and has nothing more to publish. The two travel on different sockets and arrive
    // in any order.
    [[nodiscard]] bool finished() const { return replied_ && idle_; }
    [[nodiscard]] bool replied() const { return replied_; }
    // The code called exit() or quit(): the kernel goes away a moment after the cell.
    [[nodiscard]] bool asked_to_exit() const { return asked_to_exit_; }

  private:
    std::vector<std::string> error(const boost::json::object& content);

    std::string request_id_;
    bool replied_ = false;
    bool idle_ = false;
    bool asked_to_exit_ = false;
    bool failed_ = false;  // an error line was produced: the reply repeats what iopub said
};

}  // namespace gb::interpreter
