// SPDX-License-Identifier: Apache-2.0
// One request of HTTP/1.1 and its answer over a stream (RFC 9112). Internal to this folder.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "http/parser.h"
#include "http/server.h"
#include "http/splice.h"

namespace gb::http::detail {

// What the stream, the input and the parser are is the connection's; they outlive the exchange.
class Http1Exchange final : public BodyReader, public ResponseWriter {
  public:
    struct Request {
        bool is_head = false;  // the method HEAD: the answer has no body
        bool expects_continue = false;
        int version = 11;
    };
    Http1Exchange(std::shared_ptr<Stream> stream, std::string& input, MessageParser<true>& parser,
                  Request request)
        : stream_(std::move(stream)), input_(input), parser_(parser), request_(request) {}

    awaitable<Result<std::string_view>> next() override;
    awaitable<Status> send(int status, Headers headers, std::string_view body) override;
    awaitable<Status> start(int status, Headers headers, std::optional<std::uint64_t> length) override;
    awaitable<Status> write(std::string_view piece) override;
    awaitable<Status> start_with(int status, Headers headers, std::string_view first) override;
    awaitable<Status> finish_with(std::string_view last) override;
    awaitable<Status> write_file(int fd, std::uint64_t length) override;
    awaitable<Result<std::uint64_t>> write_from(tcp::socket& from, std::uint64_t most) override;
    awaitable<Status> finish() override;
    awaitable<Result<std::shared_ptr<Stream>>> upgrade(ResponseHead head, std::string& early) override;
    [[nodiscard]] bool started() const override { return started_; }
    awaitable<void> peer_closed() override;
    void abort() override { must_close_ = cut_ = true; }

    [[nodiscard]] bool finished() const { return finished_; }
    [[nodiscard]] bool upgraded() const { return upgraded_; }
    [[nodiscard]] bool must_close() const { return must_close_; }  // no further request on this connection
    [[nodiscard]] bool cut() const { return cut_; }  // and the client must not take the answer for whole

  private:
    Result<std::string> open_head(int status, Headers headers, std::optional<std::uint64_t> length);
    Error fail_write(const boost::system::error_code& ec);
    awaitable<Status> raw(std::string_view bytes);
    [[nodiscard]] bool is_chunked() const;
    awaitable<Status> write_chunk(std::string_view before, std::string_view piece, std::string_view behind);
    awaitable<Status> send_file(int fd, std::uint64_t length);
    awaitable<Status> copy_file(int fd, std::uint64_t length);
    std::unexpected<Error> file_ended(ssize_t got);
    awaitable<void> watch_socket();
    awaitable<bool> read_ahead();

    std::shared_ptr<Stream> stream_;
    std::string& input_;
    MessageParser<true>& parser_;
    Request request_;
    bool started_ = false, finished_ = false, upgraded_ = false, must_close_ = false, cut_ = false;
    std::optional<std::uint64_t> left_;  // of an answer of known length
    std::optional<SplicePipe> pipe_;
    std::array<char, 65536> chunk_;
};

// Answers such as 204 have no body, whatever was asked (RFC 9110 6.4.1).
inline bool bodiless(int status) {
    return status == 204 || status == 304 || status / 100 == 1;
}


}  // namespace gb::http::detail
