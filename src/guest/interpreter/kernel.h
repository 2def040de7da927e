// One running kernel as the server's thread sees it: requests go in, messages come out in order.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "guest/interpreter/jupyter_client.h"
#include "guest/interpreter/kernel_process.h"
#include "guest/interpreter/wakeup.h"

namespace gb::interpreter {

class Kernel {
  public:
    // Spawns it and waits until it answers on every channel. `wakeup` is notified whenever there is something
    // new.
    static awaitable<Result<std::unique_ptr<Kernel>>> start(KernelOptions options, zmq::context_t& zmq,
                                                            asio::any_io_executor executor,
                                                            std::shared_ptr<Wakeup> wakeup);

    // Sends an execute_request, returns its msg_id.
    std::string execute(std::string_view code, Visibility visibility);

    std::optional<Message> next_message();
    [[nodiscard]] bool exited() const { return inbox_->exited && inbox_->messages.empty(); }
    KernelProcess& process() { return *process_; }

  private:
    struct Inbox {
        std::deque<Message> messages;
        bool exited = false;
    };

    Kernel() = default;
    awaitable<Status> wait_until_ready(std::shared_ptr<Wakeup> wakeup);
    std::string request(std::string_view type, boost::json::object content);

    std::string session_;
    std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();  // shared with events still on their way
    std::unique_ptr<KernelProcess> process_;
    std::unique_ptr<JupyterClient> client_;  // goes before the process
};

}  // namespace gb::interpreter
