// SPDX-License-Identifier: Apache-2.0
#include "egress/tunnel.h"

#include <array>
#include <optional>

#include <boost/asio/buffer.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/error_tuple.h"
#include "http/splice.h"

namespace gb::egress {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;
constexpr std::uint64_t kSpliceFrom = 128 << 10;  // bytes of a direction until it is worth a pipe
constexpr std::uint64_t kSpliceMost = 1 << 20;
constexpr std::size_t kCopied = 16 << 10;

// One tunnel's two directions.
struct Ends {
    std::shared_ptr<tcp::socket> guest, upstream;
    std::shared_ptr<ByteCounters> counters;
    void cut() const {
        reset(*guest);
        reset(*upstream);
    }
};

// 0: the end of the direction; nullopt: broken.
awaitable<std::optional<std::uint64_t>> copy(tcp::socket& from, tcp::socket& to,
                                             std::array<char, kCopied>& piece) {
    auto [ec, n] = co_await from.async_read_some(asio::buffer(piece), kErrorTuple);
    if (ec == asio::error::eof) co_return 0;
    if (ec) co_return std::nullopt;
    auto [write_ec, written] = co_await asio::async_write(to, asio::buffer(piece, n), kErrorTuple);
    if (write_ec) co_return std::nullopt;
    co_return n;
}

awaitable<void> pump(Ends ends, bool upwards) {
    const std::shared_ptr<tcp::socket> from = upwards ? ends.guest : ends.upstream;
    const std::shared_ptr<tcp::socket> to = upwards ? ends.upstream : ends.guest;
    std::uint64_t& total = upwards ? ends.counters->up : ends.counters->down;
    std::uint64_t moved = 0;
    auto piece = std::make_unique_for_overwrite<std::array<char, kCopied>>();
    std::optional<http::SplicePipe> pipe;
    for (;;) {
        if (!pipe && piece && moved >= kSpliceFrom)
            if (auto opened =
                    http::SplicePipe::open()) {  // otherwise no descriptors are left: copying needs none
                pipe.emplace(*std::move(opened));
                piece.reset();
            }
        std::optional<std::uint64_t> n;
        if (pipe) {
            if (auto spliced = co_await pipe->move(*from, *to, kSpliceMost)) n = *spliced;
        } else {
            n = co_await copy(*from, *to, *piece);
        }
        if (!n) co_return ends.cut();
        if (*n == 0) break;
        moved += *n;
        total += *n;
        // Two peers that are as fast as memory must not keep the loop to themselves.
        co_await asio::post(from->get_executor(), asio::use_awaitable);
    }
    boost::system::error_code ignored;
    to->shutdown(tcp::socket::shutdown_send, ignored);
}

}  // namespace

void reset(tcp::socket& socket) {
    boost::system::error_code ignored;
    socket.set_option(asio::socket_base::linger(true, 0), ignored);
    socket.close(ignored);
}

awaitable<void> tunnel(std::shared_ptr<tcp::socket> guest, std::shared_ptr<tcp::socket> upstream,
                       std::shared_ptr<ByteCounters> counters, TunnelOptions options) {
    boost::system::error_code ignored;
    for (const auto& socket : {guest, upstream}) {
        socket->set_option(tcp::no_delay(true), ignored);
        socket->set_option(asio::socket_base::keep_alive(true), ignored);
    }
    const Ends ends{guest, upstream, counters};
    struct Watch {
        asio::steady_timer timer;
        int left = 2;
        std::uint64_t seen = 0;
    };
    auto watch = std::make_shared<Watch>(Watch{asio::steady_timer(guest->get_executor())});
    // From the end of the first direction on.
    auto tick = std::make_shared<std::function<void()>>();
    *tick = [watch, ends, options, again = std::weak_ptr(tick)] {
        watch->seen = ends.counters->up + ends.counters->down;
        watch->timer.expires_after(options.half_open);
        watch->timer.async_wait([watch, ends, again](const boost::system::error_code& ec) {
            if (ec || watch->left == 0) return;
            if (watch->seen == ends.counters->up + ends.counters->down) return ends.cut();
            if (auto next = again.lock()) (*next)();
        });
    };
    auto direction = [&](bool upwards) -> awaitable<void> {
        co_await pump(ends, upwards);
        if (--watch->left == 1) (*tick)();
    };
    using namespace asio::experimental::awaitable_operators;
    co_await (direction(true) && direction(false));
    watch->timer.cancel();
    guest->close(ignored);
    upstream->close(ignored);
}

}  // namespace gb::egress
