// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/subscriber.h"

namespace gb::agent {
namespace {

std::size_t size_of(const Event& event) {
    const auto* output = std::get_if<OutputEvent>(&event);
    return output != nullptr ? output->data.size() : 0;
}

}  // namespace

void Subscriber::push(const EventPtr& event) {
    if (cut_) return;
    if (queue_.empty()) made_progress();
    bytes_ += size_of(*event);
    queue_.push_back(event);
    wake_.notify();
}

void Subscriber::cut() {
    cut_ = true;
    queue_.clear();
    bytes_ = 0;
    wake_.notify();
}

EventPtr Subscriber::pop() {
    if (queue_.empty()) return nullptr;
    EventPtr event = std::move(queue_.front());
    queue_.pop_front();
    bytes_ -= size_of(*event);
    made_progress();
    on_room_();
    return event;
}

}  // namespace gb::agent
