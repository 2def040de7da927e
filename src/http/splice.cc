// SPDX-License-Identifier: Apache-2.0
#include "http/splice.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include <boost/asio/use_awaitable.hpp>

#include "base/error_tuple.h"

namespace gb::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
constexpr std::uint64_t kSplicePiece = 1 << 20;

std::unexpected<Error> splice_failed(const boost::system::error_code& ec) {
    return fail(ErrorCode::unavailable, "connection: " + ec.message());
}

}  // namespace

Result<SplicePipe> SplicePipe::open() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return fail_errno("pipe");
    SplicePipe out{UniqueFd(ends[0]), UniqueFd(ends[1])};
    (void)::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(kSplicePiece));  // refused to the poor: smaller pieces then
    return out;
}

asio::awaitable<Result<std::uint64_t>> SplicePipe::move(tcp::socket& from, tcp::socket& to, std::uint64_t most) {
    boost::system::error_code ignored;
    from.native_non_blocking(true, ignored);
    to.native_non_blocking(true, ignored);
    constexpr unsigned kFlags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
    ssize_t taken = 0;
    for (;;) {
        taken = ::splice(from.native_handle(), nullptr, write_.get(), nullptr,
                         static_cast<std::size_t>(std::min(most, kSplicePiece)), kFlags);
        if (taken > 0) break;
        if (taken == 0) co_return std::uint64_t{0};
        if (errno != EAGAIN && errno != EINTR) co_return fail_errno("splice");
        auto [ec] = co_await from.async_wait(tcp::socket::wait_read, kErrorTuple);
        if (ec) co_return splice_failed(ec);
    }
    for (ssize_t left = taken; left > 0;) {
        const ssize_t n =
            ::splice(read_.get(), nullptr, to.native_handle(), nullptr, static_cast<std::size_t>(left), kFlags);
        if (n > 0) {
            left -= n;
            continue;
        }
        if (n == 0 || (errno != EAGAIN && errno != EINTR)) co_return fail_errno("splice");
        auto [ec] = co_await to.async_wait(tcp::socket::wait_write, kErrorTuple);
        if (ec) co_return splice_failed(ec);
    }
    co_return static_cast<std::uint64_t>(taken);
}

}  // namespace gb::http
