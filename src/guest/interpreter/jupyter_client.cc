// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/jupyter_client.h"

#include <sys/eventfd.h>

#include <fcntl.h>
#include <signal.h>
#include <zmq_addon.hpp>

#include "base/log.h"

namespace gb::interpreter {
namespace {

constexpr int kReconnectMs = 20;                 // the kernel opens its sockets some time after we connect
constexpr int kQueue = 64;                       // messages that wait in a socket of a kernel that waits too
constexpr std::size_t kUnreadLimit = 8UL << 20;  // bytes that wait for the server's thread
constexpr std::chrono::milliseconds kLookAgain{2};
constexpr std::size_t kBatchBytes = 256 * 1024;      // handed over together
constexpr std::chrono::milliseconds kLastWordsWait{50};  // what a dead kernel wrote may still be on its way

zmq::socket_t open_socket(zmq::context_t& zmq, zmq::socket_type type, const std::string& where,
                          int queue = 0) {
    zmq::socket_t socket(zmq, type);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::rcvhwm, queue);  // 0: no limit, for a kernel that would drop output
    socket.set(zmq::sockopt::sndhwm, 0);
    socket.set(zmq::sockopt::reconnect_ivl, kReconnectMs);
    if (type == zmq::socket_type::sub) socket.set(zmq::sockopt::subscribe, "");
    socket.connect(where);
    return socket;
}

}  // namespace

struct JupyterClient::Sockets {
    Sockets(zmq::context_t& zmq, const Connection& to, int queue)
        : shell(open_socket(zmq, zmq::socket_type::dealer, endpoint(to, Channel::shell))),
          control(open_socket(zmq, zmq::socket_type::dealer, endpoint(to, Channel::control))),
          iopub(open_socket(zmq, zmq::socket_type::sub, endpoint(to, Channel::iopub), queue)) {}

    zmq::socket_t shell, control, iopub;
};

Result<std::unique_ptr<JupyterClient>> JupyterClient::connect(zmq::context_t& zmq, Connection connection,
                                                              int pidfd, Events events) {
    UniqueFd own_pidfd(::fcntl(pidfd, F_DUPFD_CLOEXEC, 3));
    if (!own_pidfd) return fail_errno("duplicate a pidfd");
    UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake) return fail_errno("eventfd");
    return std::unique_ptr<JupyterClient>(new JupyterClient(zmq, std::move(connection), std::move(own_pidfd),
                                                            std::move(wake), std::move(events)));
}

JupyterClient::JupyterClient(zmq::context_t& zmq, Connection connection, UniqueFd pidfd, UniqueFd wake,
                             Events events)
    : zmq_(zmq),
      connection_(std::move(connection)),
      pidfd_(std::move(pidfd)),
      wake_(std::move(wake)),
      events_(std::move(events)) {
    // Signals of the process belong to the thread that waits for them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

JupyterClient::~JupyterClient() {
    {
        std::lock_guard lock(mutex_);
        closing_ = true;
    }
    eventfd_write(wake_.get(), 1);
    thread_.join();
}

void JupyterClient::send(Channel channel, Request request) {
    {
        std::lock_guard lock(mutex_);
        queue_.emplace_back(channel, std::move(request));
    }
    eventfd_write(wake_.get(), 1);
}

void JupyterClient::run() {
    try {
        Sockets sockets(zmq_, connection_, events_.unread ? kQueue : 0);
        poll_until_end(sockets);
    } catch (const zmq::error_t& error) {
        log::error("kernel connection lost", {{"error", error.what()}});
        events_.on_exit();
    }
}

void JupyterClient::poll_until_end(Sockets& sockets) {
    enum : std::size_t { wake, exit, shell, control, iopub, count };
    zmq::pollitem_t items[count] = {
        {nullptr, wake_.get(), ZMQ_POLLIN, 0}, {nullptr, pidfd_.get(), ZMQ_POLLIN, 0},
        {sockets.shell, 0, ZMQ_POLLIN, 0},     {sockets.control, 0, ZMQ_POLLIN, 0},
        {sockets.iopub, 0, ZMQ_POLLIN, 0},
    };
    for (;;) {
        // Who reads slowly slows the kernel down; nothing piles up on the way.
        const bool full = events_.unread != nullptr && *events_.unread > kUnreadLimit;
        items[iopub].events = full ? 0 : ZMQ_POLLIN;
        if (zmq_poll(items, count, full ? kLookAgain.count() : -1) < 0) {
            if (zmq_errno() == EINTR) continue;
            throw zmq::error_t();
        }
        if (items[wake].revents != 0) {
            eventfd_t number = 0;
            eventfd_read(wake_.get(), &number);
            if (!send_queued(sockets)) return;
        }
        if (items[iopub].revents != 0) receive(sockets.iopub);
        if (items[shell].revents != 0) receive(sockets.shell);
        if (items[control].revents != 0) receive(sockets.control);
        if (items[exit].revents != 0) {
            zmq::pollitem_t last[] = {{sockets.shell, 0, ZMQ_POLLIN, 0}, {sockets.iopub, 0, ZMQ_POLLIN, 0}};
            while (zmq_poll(last, 2, kLastWordsWait.count()) > 0) {
                receive(sockets.iopub);
                receive(sockets.shell);
            }
            events_.on_exit();
            return;
        }
    }
}

bool JupyterClient::send_queued(Sockets& sockets) {
    std::vector<std::pair<Channel, Request>> queue;
    {
        std::lock_guard lock(mutex_);
        if (closing_) return false;
        queue.swap(queue_);
    }
    for (const auto& [channel, request] : queue) {
        zmq::socket_t& socket = channel == Channel::control ? sockets.control : sockets.shell;
        const std::vector<std::string> frames = build_message(request, connection_.key);
        for (std::size_t i = 0; i < frames.size(); ++i) {
            const auto flags = i + 1 < frames.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
            socket.send(zmq::buffer(frames[i]), flags);
        }
    }
    return true;
}

// Takes what has arrived, up to one batch; what is left makes the next poll return at once.
void JupyterClient::receive(zmq::socket_t& socket) {
    std::vector<Message> batch;
    std::size_t bytes = 0;
    while (bytes < kBatchBytes) {
        std::vector<zmq::message_t> parts;
        if (!zmq::recv_multipart(socket, std::back_inserter(parts), zmq::recv_flags::dontwait)) break;
        std::vector<std::string_view> frames;
        for (const zmq::message_t& part : parts) {
            frames.push_back(part.to_string_view());
            bytes += part.size();
        }
        auto message = parse_message(frames, connection_.key);
        if (message) {
            if (events_.unread) {
                for (std::string_view frame : frames) message->size += frame.size();
                *events_.unread += message->size;
            }
            batch.push_back(*std::move(message));
        } else {
            log::warn("kernel message dropped", {{"error", message.error().message}});
        }
    }
    if (!batch.empty()) events_.on_messages(std::move(batch));
}

}  // namespace gb::interpreter
