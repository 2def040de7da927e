// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/input_queue.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>

namespace gb::agent {

awaitable<Status> InputQueue::write(std::string data) {
    auto item = std::make_shared<Item>(co_await asio::this_coro::executor);
    item->data = std::move(data);
    co_return co_await enqueue(std::move(item));
}

awaitable<Status> InputQueue::close() {
    auto item = std::make_shared<Item>(co_await asio::this_coro::executor);
    item->close = true;
    co_return co_await enqueue(std::move(item));
}

awaitable<Status> InputQueue::enqueue(std::shared_ptr<Item> item) {
    if (!descriptor_) co_return fail(ErrorCode::internal, "stdin is not enabled for this process");
    if (closed_) co_return fail(ErrorCode::internal, "stdin is closed");
    if (queued_ + item->data.size() > kMaxQueued)
        co_return fail(ErrorCode::resource_exhausted,
                       "the process does not read its input: too much is waiting");
    queued_ += item->data.size();
    closed_ = item->close;
    items_.push_back(item);
    if (!draining_) {
        draining_ = true;
        asio::co_spawn(descriptor_->get_executor(), drain(shared_from_this()), asio::detached);
    }
    while (!item->result) co_await item->done.wait();
    co_return *item->result;
}

awaitable<void> InputQueue::drain(std::shared_ptr<InputQueue> self) {
    while (!self->items_.empty()) {
        const std::shared_ptr<Item> item = self->items_.front();
        Status result;
        if (item->close) {
            boost::system::error_code ignored;
            self->descriptor_->close(ignored);
        } else {
            auto [ec, n] = co_await asio::async_write(*self->descriptor_, asio::buffer(item->data), kErrorTuple);
            if (ec) result = fail(ErrorCode::internal, "error writing to stdin: " + ec.message());
        }
        if (!self->items_.empty() && self->items_.front() == item) self->complete(result);
    }
    self->draining_ = false;
}

void InputQueue::complete(const Status& result) {
    const std::shared_ptr<Item> item = std::move(items_.front());
    items_.pop_front();
    queued_ -= item->data.size();
    item->result = result;
    item->done.notify();
}

void InputQueue::shut() {
    closed_ = true;
    const Status ended = fail(ErrorCode::internal, "the process has ended");
    while (!items_.empty()) complete(ended);
    // Only now: a write that is under way is aborted, and its item is gone already.
    boost::system::error_code ignored;
    if (descriptor_ && kind_ == Kind::pipe) descriptor_->close(ignored);
}

}  // namespace gb::agent
