// SPDX-License-Identifier: Apache-2.0
// One HTTP/1.1 connection to a server, used for one request after another. Over TCP, or over any other stream
// such as TLS.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/result.h"
#include "http/message.h"
#include "http/server.h"

namespace gb::http {

struct ClientOptions {
    std::size_t max_head_bytes = std::size_t{256} * 1024;
    // Answers that a forgiving reader would put right (folded lines, several lengths, unknown transfer codings) are
    // errors: for servers that nobody vouches for. See head_check.h.
    bool strict = false;
};

class ClientConnection {
  public:
    explicit ClientConnection(tcp::socket socket);  // connected already
    explicit ClientConnection(std::shared_ptr<Stream> stream, ClientOptions options = {});
    ~ClientConnection();
    ClientConnection(ClientConnection&&) noexcept;
    ClientConnection& operator=(ClientConnection&&) noexcept;

    static awaitable<Result<ClientConnection>> connect(tcp::endpoint to, std::chrono::milliseconds timeout);

    // Sends the head. With `length` exactly that many bytes must follow by write(), without it the body is
    // chunked and ended by finish(). A length of 0 needs neither.
    awaitable<Status> start(RequestHead head, std::optional<std::uint64_t> length);
    awaitable<Status> write(std::string_view piece);
    awaitable<Status> finish();
    // Reads the head of the answer; interim 1xx answers other than 101 are skipped.
    awaitable<Result<ResponseHead>> read_head();
    // The next piece of the answer's body; empty at its end.
    awaitable<Result<std::string_view>> next();
    awaitable<Result<std::string>> read_all(std::size_t limit);
    // How much of the body may be taken from socket() past this object, because its length is known and none of it has
    // been read ahead; say how much it was. 0: by next() only.
    [[nodiscard]] std::uint64_t bare_body() const;
    void took_bare(std::uint64_t count);

    // start + write + read_head + read_all.
    struct Response {
        ResponseHead head;
        std::string body;
    };
    awaitable<Result<Response>> request(RequestHead head, std::string_view body,
                                        std::size_t limit = std::size_t{16} << 20);

    // Whether anything of an answer has arrived since start().
    [[nodiscard]] bool heard() const;
    // True when the last request was sent and its answer read to the end, and the server keeps the connection.
    [[nodiscard]] bool reusable() const;
    // False when the other side has closed an idle connection (or sent what nobody asked for).
    [[nodiscard]] bool still_open();
    // After a 101: the bare stream, and bytes that arrived behind the head.
    std::shared_ptr<Stream> take_stream(std::string& early);
    tcp::socket take_socket(std::string& early);  // of a connection over TCP
    tcp::socket& socket();
    void close();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace gb::http
