// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace gb {

// The completion token of our coroutines: the operation answers a tuple that begins with its error code, and throws nothing.
// `auto [ec, size] = co_await socket.async_read_some(room, kErrorTuple);`
inline constexpr auto kErrorTuple = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace gb
