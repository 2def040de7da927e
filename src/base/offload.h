// SPDX-License-Identifier: Apache-2.0
// Runs a blocking function on a thread pool and continues the coroutine on its own executor afterwards. The pool must
// be joined before that executor's context is destroyed.
#pragma once

#include <optional>
#include <type_traits>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace gb {

template <class F>
boost::asio::awaitable<std::invoke_result_t<F&>> offload(boost::asio::thread_pool& pool, F function) {
    namespace asio = boost::asio;
    std::optional<std::invoke_result_t<F&>> result;
    auto executor = co_await asio::this_coro::executor;
    auto initiate = [&](auto handler) {
        asio::post(pool, [&result, &function, executor, work = asio::make_work_guard(executor),
                          handler = std::move(handler)]() mutable {
            result.emplace(function());
            asio::post(executor, std::move(handler));
        });
    };
    co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(initiate, asio::use_awaitable);
    co_return std::move(*result);
}

}  // namespace gb
