// SPDX-License-Identifier: Apache-2.0
// One request of HTTP/2 and its answer. Internal to this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <boost/asio/steady_timer.hpp>

#include "http/h2_session.h"
#include "http/server.h"

namespace gb::http::detail {

// What coroutines wait for: something has changed, look again.
class Signal {
  public:
    explicit Signal(const asio::any_io_executor& executor)
        : timer_(executor, asio::steady_timer::time_point::max()) {}
    // False when the waiting coroutine was cancelled instead.
    awaitable<bool> wait();
    void notify() { timer_.cancel(); }

  private:
    asio::steady_timer timer_;
};

// The session outlives it.
class H2Stream final : public BodyReader, public ResponseWriter {
  public:
    H2Stream(H2Session& session, std::int32_t id, const asio::any_io_executor& executor)
        : session_(session), id_(id), input_(executor), output_(executor) {}

    awaitable<Result<std::string_view>> next() override;
    awaitable<Status> send(int status, Headers headers, std::string_view body) override;
    awaitable<Status> start(int status, Headers headers, std::optional<std::uint64_t> length) override;
    awaitable<Status> write(std::string_view piece) override;
    awaitable<Status> write_file(int fd, std::uint64_t length) override;
    awaitable<Status> finish() override;
    awaitable<Result<std::shared_ptr<Stream>>> upgrade(ResponseHead head, std::string& early) override;
    [[nodiscard]] bool started() const override { return started_; }
    awaitable<void> peer_closed() override;
    void abort() override;

    // Answers the request by `handler`, whatever that leaves open.
    awaitable<void> serve(const Handler& handler, tcp::endpoint peer);

  private:
    friend class H2Session;
    friend struct H2Callbacks;

    // From the session.
    void add_body(std::string_view bytes);
    void end_body();
    void on_closed();
    void on_gone();
    std::size_t give(char* room, std::size_t size, bool& end);

    Status open(int status, Headers& headers, std::optional<std::uint64_t> length);
    awaitable<Status> transmit(std::string_view piece, bool end);

    H2Session& session_;
    const std::int32_t id_;
    Signal input_, output_;

    // The request.
    RequestHead head_;
    std::string authority_;
    std::size_t header_bytes_ = 0;
    bool head_too_large_ = false;
    bool is_head_ = false, expects_continue_ = false, body_ended_ = false;
    std::string incoming_, piece_;

    // The answer.
    bool started_ = false, finished_ = false, has_body_ = false;
    std::optional<std::uint64_t> left_;
    std::string_view outgoing_;  // of a write() that waits for it to be taken
    bool last_ = false;          // the answer ends behind it
    bool end_given_ = false;     // to nghttp2
    bool answered_ = false;      // all is sent

    bool cut_ = false;     // by abort()
    bool served_ = false;  // the handler is done
    bool closed_ = false;  // for nghttp2, whatever the reason
    bool gone_ = false;    // nobody waits for the answer any more, or nobody is left
};

}  // namespace gb::http::detail
