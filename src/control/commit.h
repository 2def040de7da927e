// SPDX-License-Identifier: Apache-2.0
// Stores a change without holding a thread while the disk works.
#pragma once

#include <optional>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "store/store.h"

namespace gb {

// Continues on the coroutine's own executor. The store must outlive that executor's work.
inline boost::asio::awaitable<Status> commit(Store& store, Change change) {
    namespace asio = boost::asio;
    std::optional<Status> result;
    auto executor = co_await asio::this_coro::executor;
    auto initiate = [&](auto handler) {
        // The store wants a function that can be copied; the handler can only be moved.
        auto shared = std::make_shared<decltype(handler)>(std::move(handler));
        store.submit(std::move(change),
                     [&result, executor, work = asio::make_work_guard(executor), shared](Status status) {
                         result.emplace(std::move(status));
                         asio::post(executor, [shared] { std::move (*shared)(); });
                     });
    };
    co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(initiate, asio::use_awaitable);
    co_return std::move(*result);
}

}  // namespace gb
