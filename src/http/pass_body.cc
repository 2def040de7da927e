// SPDX-License-Identifier: Apache-2.0
#include "http/pass_body.h"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>

namespace gb::http {

awaitable<bool> pass_body(Exchange& exchange, ClientConnection& upstream, bool has_body) {
    co_await asio::this_coro::throw_if_cancelled(false);
    const auto cancellation = co_await asio::this_coro::cancellation_state;
    // The signal comes once and may find this coroutine between two waits: look for it after each.
    auto over = [&] { return cancellation.cancelled() != asio::cancellation_type::none; };
    bool sending = has_body;
    while (has_body) {
        auto piece = co_await exchange.body.next();
        if (over()) co_return false;
        if (!piece)
            co_return piece.error().code == ErrorCode::invalid_argument ||
                piece.error().code == ErrorCode::too_large;
        if (piece->empty()) {
            if (sending) co_await upstream.finish();
            break;
        }
        // A server may answer before it has read everything; its answer still counts.
        if (sending) sending = (co_await upstream.write(*piece)).has_value();
        if (over()) co_return false;
    }
    if (!over()) co_await exchange.response.peer_closed();
    co_return false;
}

}  // namespace gb::http
