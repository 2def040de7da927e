// SPDX-License-Identifier: Apache-2.0
#include "egress/dns_server.h"

#include <array>
#include <list>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/error_tuple.h"
#include "egress/dns_wire.h"

namespace gb::egress {
namespace {

using asio::ip::tcp;
using asio::ip::udp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

// No honest query is longer. A datagram beyond it is cut, which parse_query() sees.
constexpr std::size_t kMaxQuery = 4096;

void rethrow(const std::exception_ptr& failure) {
    if (failure) std::rethrow_exception(failure);
}

// Lets so many things happen in each second, and makes the others wait for the next.
class Pace {
  public:
    Pace(asio::any_io_executor executor, std::size_t per_second)
        : executor_(std::move(executor)), per_second_(per_second) {}

    awaitable<void> step() {
        for (;;) {
            const auto now = Clock::now();
            if (now >= next_) {
                next_ = now + std::chrono::seconds(1);
                used_ = 0;
            }
            if (used_ < per_second_) break;
            asio::steady_timer timer(executor_, next_);
            co_await timer.async_wait(kErrorTuple);
        }
        ++used_;
    }

  private:
    asio::any_io_executor executor_;
    std::size_t per_second_, used_ = 0;
    Clock::time_point next_;
};

struct Connection {
    explicit Connection(tcp::socket s) : socket(std::move(s)), limit(socket.get_executor()) {}
    tcp::socket socket;
    asio::steady_timer limit;
    bool idle = true;              // no whole query has come yet
    std::uint64_t idle_since = 0;  // a counter
    void close() {
        error_code ignored;
        socket.close(ignored);
        limit.cancel();
    }
};

// Closes the connection after `time`, unless it is called again before.
void limit(const std::shared_ptr<Connection>& connection, std::chrono::milliseconds time) {
    connection->limit.expires_after(time);
    connection->limit.async_wait([connection](error_code ec) {
        // A wait that had ended already when it was prolonged comes without an error.
        if (!ec && connection->limit.expiry() <= Clock::now()) connection->close();
    });
}

}  // namespace

struct DnsServer::Core {
    Core(const asio::any_io_executor& e, Answerer a, DnsServerOptions o)
        : executor(e), udp(e), acceptor(e), answerer(std::move(a)), options(o), pace(e, o.max_per_second) {}

    using Self = std::shared_ptr<Core>;
    static awaitable<void> receive(Self self);
    static awaitable<void> answer_datagram(Self self, DnsQuery query, udp::endpoint guest);
    static awaitable<void> accept(Self self);
    static awaitable<void> serve(Self self, std::shared_ptr<Connection> connection);
    awaitable<std::string> reply_to(std::string message);
    bool make_room();

    asio::any_io_executor executor;
    udp::socket udp;
    tcp::acceptor acceptor;
    Answerer answerer;
    DnsServerOptions options;
    DnsServerCounters counters;
    Pace pace;
    bool stopped = false;
    std::size_t udp_queries = 0;  // under way
    std::uint64_t idle_clock = 0;
    std::list<std::shared_ptr<Connection>> connections;
};

awaitable<void> DnsServer::Core::receive(Self self) {
    std::array<char, kMaxQuery> room;
    asio::steady_timer pause(self->executor);
    while (!self->stopped) {
        co_await self->pace.step();
        if (self->stopped) co_return;
        udp::endpoint guest;
        auto [ec, size] = co_await self->udp.async_receive_from(asio::buffer(room), guest, kErrorTuple);
        if (self->stopped) co_return;
        if (ec) {  // out of memory, for example: it passes
            pause.expires_after(std::chrono::milliseconds(100));
            co_await pause.async_wait(kErrorTuple);
            continue;
        }
        auto query = parse_query({room.data(), size});
        if (!query) {
            ++self->counters.unusable;
            const std::string& reply = query.error().reply;
            if (!reply.empty()) co_await self->udp.async_send_to(asio::buffer(reply), guest, kErrorTuple);
        } else if (self->udp_queries >= self->options.max_udp_queries) {
            ++self->counters.dropped;
        } else {
            ++self->udp_queries;
            ++self->counters.queries;
            asio::co_spawn(self->executor, answer_datagram(self, *std::move(query), guest), rethrow);
        }
    }
}

awaitable<void> DnsServer::Core::answer_datagram(Self self, DnsQuery query, udp::endpoint guest) {
    const DnsReply reply = co_await self->answerer(query);
    if (!self->stopped) {
        const std::string bytes = encode(query, reply, Transport::udp);
        co_await self->udp.async_send_to(asio::buffer(bytes), guest, kErrorTuple);
    }
    --self->udp_queries;
}

// Whether one more connection may be taken.
bool DnsServer::Core::make_room() {
    if (connections.size() < options.max_connections) return true;
    ++counters.closed_for_room;
    std::shared_ptr<Connection> oldest;
    for (const auto& connection : connections)
        if (connection->idle && (!oldest || connection->idle_since < oldest->idle_since)) oldest = connection;
    if (!oldest) return false;
    oldest->close();
    connections.remove(oldest);
    return true;
}

awaitable<void> DnsServer::Core::accept(Self self) {
    asio::steady_timer pause(self->executor);
    while (!self->stopped) {
        co_await self->pace.step();
        if (self->stopped) co_return;
        auto [ec, socket] = co_await self->acceptor.async_accept(kErrorTuple);
        if (self->stopped) co_return;
        if (ec) {
            pause.expires_after(std::chrono::milliseconds(100));
            co_await pause.async_wait(kErrorTuple);
            continue;
        }
        ++self->counters.connections;
        if (!self->make_room()) continue;  // closes the new one
        auto connection = std::make_shared<Connection>(std::move(socket));
        self->connections.push_back(connection);
        asio::co_spawn(self->executor, serve(self, connection), rethrow);
    }
}

awaitable<void> DnsServer::Core::serve(Self self, std::shared_ptr<Connection> connection) {
    tcp::socket& socket = connection->socket;
    while (socket.is_open()) {
        connection->idle = true;
        connection->idle_since = ++self->idle_clock;
        limit(connection, self->options.idle);
        std::string head(2, '\0');
        if (auto [ec, n] = co_await asio::async_read(socket, asio::buffer(head), kErrorTuple); ec) break;
        const std::size_t size = *wire::Reader(head).u16();
        if (size > kMaxQuery) break;
        std::string message(size, '\0');
        if (auto [ec, n] = co_await asio::async_read(socket, asio::buffer(message), kErrorTuple); ec) break;

        connection->idle = false;
        connection->limit.cancel();  // the answerer has limits of its own
        co_await self->pace.step();
        const std::string reply = co_await self->reply_to(std::move(message));
        if (reply.empty() || !socket.is_open()) break;
        std::string framed;
        wire::put_u16(framed, static_cast<std::uint16_t>(reply.size()));
        framed += reply;
        limit(connection, self->options.idle);
        if (auto [ec, n] = co_await asio::async_write(socket, asio::buffer(framed), kErrorTuple); ec) break;
    }
    connection->close();
    self->connections.remove(connection);
}

// What is sent for a message that came over TCP; empty: nothing, and the connection ends.
awaitable<std::string> DnsServer::Core::reply_to(std::string message) {
    if (stopped) co_return std::string();
    auto query = parse_query(message);
    if (!query) {
        ++counters.unusable;
        co_return std::move(query.error().reply);
    }
    ++counters.queries;
    const DnsReply reply = co_await answerer(*query);
    co_return encode(*query, reply, Transport::tcp);
}

Result<std::unique_ptr<DnsServer>> DnsServer::start(asio::any_io_executor executor, UniqueFd udp_fd,
                                                    UniqueFd tcp_fd, Answerer answerer,
                                                    DnsServerOptions options) {
    auto core = std::make_shared<Core>(executor, std::move(answerer), options);
    error_code ec;
    if (core->udp.assign(asio::ip::udp::v4(), udp_fd.get(), ec); ec)
        return fail_errno(ec.value(), "take the dns socket");
    (void)udp_fd.release();
    if (core->acceptor.assign(asio::ip::tcp::v4(), tcp_fd.get(), ec); ec)
        return fail_errno(ec.value(), "take the dns listener");
    (void)tcp_fd.release();
    if (core->udp.non_blocking(true, ec); ec) return fail_errno(ec.value(), "set up the dns socket");
    if (core->acceptor.non_blocking(true, ec); ec) return fail_errno(ec.value(), "set up the dns listener");
    asio::co_spawn(executor, Core::receive(core), rethrow);
    asio::co_spawn(executor, Core::accept(core), rethrow);
    return std::unique_ptr<DnsServer>(new DnsServer(std::move(core)));
}

DnsServer::~DnsServer() {
    stop();
}

void DnsServer::stop() {
    core_->stopped = true;
    error_code ignored;
    core_->udp.close(ignored);
    core_->acceptor.close(ignored);
    for (const auto& connection : core_->connections) connection->close();
}

const DnsServerCounters& DnsServer::counters() const {
    return core_->counters;
}

}  // namespace gb::egress
