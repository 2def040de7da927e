// SPDX-License-Identifier: Apache-2.0
// The connection to one running kernel: a thread that owns the ZeroMQ sockets. It polls them together with an
// eventfd (something to send) and the kernel's pidfd (it has ended). ZMQ_FD inside an event loop is not used:
// it is edge triggered and loses wakeups.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <zmq.hpp>

#include "base/result.h"
#include "base/unique_fd.h"
#include "guest/interpreter/connection.h"
#include "guest/interpreter/jupyter_message.h"

namespace gb::interpreter {

class JupyterClient {
  public:
    // Both are called on the client's thread and must only hand over.
    struct Events {
        std::function<void(std::vector<Message>)> on_messages;  // shell, control and iopub, each in its order
        std::shared_ptr<std::atomic<std::size_t>>
            unread;  // bytes handed over, which the receiver takes off again; null for a kernel that would
                     // drop what is not read at once
        std::function<void()> on_exit;  // once, behind the last message
    };

    // The kernel need not listen yet. `pidfd` stays the caller's; `zmq` must outlive the client.
    static Result<std::unique_ptr<JupyterClient>> connect(zmq::context_t& zmq, Connection connection,
                                                          int pidfd, Events events);
    ~JupyterClient();  // ends the thread; no event comes afterwards
    JupyterClient(const JupyterClient&) = delete;
    JupyterClient& operator=(const JupyterClient&) = delete;

    void send(Channel channel, Request request);  // shell or control

  private:
    struct Sockets;

    JupyterClient(zmq::context_t& zmq, Connection connection, UniqueFd pidfd, UniqueFd wake, Events events);
    void run();
    void poll_until_end(Sockets& sockets);
    bool send_queued(Sockets& sockets);  // false when the client is closing
    void receive(zmq::socket_t& socket);

    zmq::context_t& zmq_;
    Connection connection_;
    UniqueFd pidfd_;
    UniqueFd wake_;
    Events events_;
    std::mutex mutex_;
    std::vector<std::pair<Channel, Request>> queue_;  // guarded by mutex_
    bool closing_ = false;                            // guarded by mutex_
    std::thread thread_;                              // last: it uses all of the above
};

}  // namespace gb::interpreter
