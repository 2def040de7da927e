// SPDX-License-Identifier: Apache-2.0
// One running kernel as the server's thread sees it: requests go in, messages come out in order. What they
// say is the same for every language; how they travel is the business of the classes behind this one.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "guest/interpreter/hidden_call.h"
#include "guest/interpreter/jupyter_message.h"
#include "guest/interpreter/kernel_process.h"
#include "guest/interpreter/wakeup.h"

namespace gb::interpreter {

struct Cell {
    std::string_view code;
    std::string_view language;  // normalised; the JavaScript kernel runs two
    bool store_history = true;  // false: not counted
};

class Kernel {
  public:
    virtual ~Kernel() = default;
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;

    // Both return the id that the messages about the request carry as parent_id. The last ones are
    // `execute_reply` and `status` idle, in any order.
    virtual std::string execute(const Cell& cell) = 0;
    virtual std::string call(const HiddenCall& call) = 0;

    virtual void interrupt() { process_->interrupt(); }
    // Output that nobody takes slows the code down, as a full pipe would.
    virtual void pause_output() { process_->stop(); }
    virtual void resume_output() { process_->resume(); }

    std::optional<Message> next_message();
    [[nodiscard]] bool exited() const { return inbox_->exited && inbox_->messages.empty(); }
    KernelProcess& process() { return *process_; }

  protected:
    // Shared with events that are still on their way when the kernel goes.
    struct Inbox {
        explicit Inbox(std::shared_ptr<Wakeup> to_rouse) : wakeup(std::move(to_rouse)) {}
        void push(Message message) {
            messages.push_back(std::move(message));
            wakeup->notify();
        }
        void end() {
            exited = true;
            wakeup->notify();
        }
        std::deque<Message> messages;
        // Bytes that were handed over and not taken yet; who produces them stops at a limit.
        std::shared_ptr<std::atomic<std::size_t>> unread = std::make_shared<std::atomic<std::size_t>>(0);
        bool exited = false;
        std::shared_ptr<Wakeup> wakeup;
    };

    Kernel(std::unique_ptr<KernelProcess> process, std::shared_ptr<Wakeup> wakeup)
        : process_(std::move(process)), inbox_(std::make_shared<Inbox>(std::move(wakeup))) {}

    std::unique_ptr<KernelProcess> process_;
    std::shared_ptr<Inbox> inbox_;
};

inline std::optional<Message> Kernel::next_message() {
    if (inbox_->messages.empty()) return std::nullopt;
    Message message = std::move(inbox_->messages.front());
    inbox_->messages.pop_front();
    *inbox_->unread -= message.size;
    return message;
}

}  // namespace gb::interpreter
