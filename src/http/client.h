// One HTTP/1.1 connection to a server, used for one request after another.
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

class ClientConnection {
  public:
    explicit ClientConnection(tcp::socket socket);  // connected already
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

    // True when the last answer was read to its end and the server keeps the connection.
    [[nodiscard]] bool reusable() const;
    // False when the other side has closed an idle connection (or sent what nobody asked for).
    [[nodiscard]] bool still_open();
    // After a 101: the bare socket, and bytes that arrived behind the head.
    tcp::socket take_socket(std::string& early);
    tcp::socket& socket();
    void close();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace gb::http
