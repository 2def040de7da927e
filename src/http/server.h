// SPDX-License-Identifier: Apache-2.0
// An HTTP server on Asio coroutines: HTTP/1.1 in plain text (keep-alive, chunked bodies both ways, upgrades
// handed over as bare streams), and HTTP/1.1 or HTTP/2 over TLS, as the client asks for. Each write is
// flushed at once. Handlers see no difference. They run on the server's executor, one coroutine a request;
// one that blocks its thread blocks every connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/result.h"
#include "http/message.h"
#include "http/stream.h"

namespace gb::http {

class ServerTls;
namespace detail {
class ServerCore;
}

// A body as it arrives, in constant memory.
class BodyReader {
  public:
    virtual ~BodyReader() = default;
    // The next piece, at most 128 KiB; empty at the end of the body. Valid until the next call.
    virtual awaitable<Result<std::string_view>> next() = 0;
    // All that is left; too_large beyond `limit` bytes.
    awaitable<Result<std::string>> read_all(std::size_t limit);
};

// Answers one request: either send(), or start() then write()… then finish().
class ResponseWriter {
  public:
    virtual ~ResponseWriter() = default;
    // A whole answer. Content-Length is added; Content-Type is the caller's. `Connection: close`, here and in
    // start(), ends an HTTP/1.1 connection behind the answer.
    virtual awaitable<Status> send(int status, Headers headers, std::string_view body) = 0;
    // Opens a streamed answer: with `length` the body must be exactly that long, without it is chunked.
    virtual awaitable<Status> start(int status, Headers headers,
                                    std::optional<std::uint64_t> length = {}) = 0;
    virtual awaitable<Status> write(std::string_view piece) = 0;
    // start() without a length and write(), and write() and finish(), where possible as one packet: a short answer
    // that is streamed is mostly packets, which are what costs in a virtual machine.
    virtual awaitable<Status> start_with(int status, Headers headers, std::string_view first);
    virtual awaitable<Status> finish_with(std::string_view last);
    // The next `length` bytes of a file that sendfile(2) can read, from its offset; only for a body of known
    // length. aborted when the file ends early; then the answer is cut.
    virtual awaitable<Status> write_file(int fd, std::uint64_t length) = 0;
    // Bytes of a body of known length straight from a connected socket, at most `most`, as they arrive: how many went
    // out. 0: this answer cannot take them that way, read and write them. After an error the connection is cut.
    virtual awaitable<Result<std::uint64_t>> write_from(tcp::socket& from, std::uint64_t most);
    virtual awaitable<Status> finish() = 0;
    // Answers 101 (or whatever `head` says) and gives the connection away: no further HTTP on it. `early`
    // receives bytes that the client sent behind the request already. unimplemented on HTTP/2, which has no
    // upgrades; then an answer can still be given. stop() still cuts the stream while the handler runs.
    virtual awaitable<Result<std::shared_ptr<Stream>>> upgrade(ResponseHead head, std::string& early) = 0;
    [[nodiscard]] virtual bool started() const = 0;
    // Completes when the client has closed the connection (HTTP/2: or reset this request) or it broke; never
    // while the client still waits for the answer.
    virtual awaitable<void> peer_closed() = 0;
    // Ends this exchange without a proper end of the body: the client sees a cut stream. With HTTP/1.1 that
    // ends the connection after the handler.
    virtual void abort() = 0;

    awaitable<Status> send_json(int status, std::string_view body);
};

struct Exchange {
    RequestHead head;
    Target target;
    tcp::endpoint peer;
    BodyReader& body;
    ResponseWriter& response;
    bool tls = false;  // the client came by https
    int version = 11;  // 10: HTTP/1.0
};

// May throw nothing. If it returns without having answered, the server answers 500.
using Handler = std::function<awaitable<void>(Exchange&)>;

struct ServerOptions {
    std::size_t max_header_bytes = 64 * 1024;
    std::chrono::seconds idle_timeout{620};      // between requests of one connection
    std::chrono::seconds header_timeout{30};     // from the first byte of a head to its end
    std::size_t max_connections = 10'000;        // more are accepted and closed at once
    std::chrono::seconds handshake_timeout{30};  // of TLS
    std::chrono::seconds certificate_check{5};   // how often changed certificate files are looked for
    std::uint32_t max_concurrent_streams = 256;  // HTTP/2: requests of one connection at the same time
    // For proxies that pass HTTP/1.1 requests on to others: heads that two readers could understand differently are
    // refused (see head_check.h), and targets are whatever was written: Exchange::target stays empty.
    bool relaying = false;
};

class Server {
  public:
    Server(asio::any_io_executor executor, Handler handler, ServerOptions options = {});
    ~Server();  // closes the listeners and every connection
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Opens a listening socket; port 0 picks a free one. Returns where it listens.
    Result<tcp::endpoint> listen(const tcp::endpoint& where);
    // The same with TLS; ALPN decides between HTTP/2 and HTTP/1.1. Looks for changed certificate files now
    // and then and loads them; ones that are broken are logged and leave the old ones in force. Needs the
    // library gb_https.
    Result<tcp::endpoint> listen_tls(const tcp::endpoint& where, std::shared_ptr<ServerTls> tls);
    // Speaks HTTP/1.1 on a connection that somebody else accepted, until it ends. The server must outlive that.
    awaitable<void> serve(std::shared_ptr<Stream> stream, tcp::endpoint peer);
    [[nodiscard]] std::size_t connections() const;
    void stop();  // no new connections, the open ones are cut

  private:
    std::shared_ptr<detail::ServerCore> core_;
};

}  // namespace gb::http
