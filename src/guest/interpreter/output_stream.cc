// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/output_stream.h"

namespace gb::interpreter {
namespace {

constexpr std::size_t kHighWater = 32UL << 20;

}  // namespace

OutputStream::OutputStream(const asio::any_io_executor& executor, std::shared_ptr<Wakeup> producer)
    : producer_(std::move(producer)), consumer_(executor) {}

void OutputStream::push(std::string_view line) {
    if (abandoned_ || closed_) return;
    pending_ += line;
    if (pending_.size() > kHighWater) congested_ = true;
    consumer_.notify();
}

void OutputStream::close() {
    closed_ = true;
    consumer_.notify();
}

void OutputStream::abandon() {
    if (abandoned_) return;
    abandoned_ = true;
    congested_ = false;
    pending_.clear();
    producer_->notify();
    consumer_.notify();
}

awaitable<std::optional<std::string>> OutputStream::take(std::chrono::milliseconds limit) {
    while (pending_.empty() && !closed_ && !abandoned_)
        if (!co_await consumer_.wait_for(limit)) co_return std::nullopt;
    if (congested_) {
        congested_ = false;
        producer_->notify();
    }
    co_return std::exchange(pending_, std::string());
}

}  // namespace gb::interpreter
