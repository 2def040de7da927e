// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/polled_watcher.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include "guest/agent/entry_info.h"
#include "guest/agent/paths.h"

namespace gb::agent {
namespace {

constexpr std::size_t kMostWaiting = 16384;  // as many as the kernel keeps

}  // namespace

filesystem::FilesystemEvent watch_message(const FolderWatch& watch, const WatchEvent& event,
                                          bool include_entry, UserCache& users) {
    filesystem::FilesystemEvent message;
    message.set_name(to_utf8(event.name));
    message.set_type(event.type);
    if (include_entry)
        if (auto entry = entry_info(clean_path(join_path(watch.path(), event.name)), *users.get()))
            *message.mutable_entry() = *std::move(entry);
    return message;
}

PolledWatcher::PolledWatcher(const asio::any_io_executor& executor, FolderWatch watch, bool include_entry,
                             UserCache& users)
    : executor_(executor),
      watch_(std::move(watch)),
      readable_(executor, watch_.fd()),
      include_entry_(include_entry),
      users_(users) {}

PolledWatcher::~PolledWatcher() {
    if (readable_.is_open()) readable_.release();
}

void PolledWatcher::begin() {
    asio::co_spawn(executor_, run(shared_from_this()), asio::detached);
}

void PolledWatcher::stop() {
    if (readable_.is_open()) readable_.release();  // ends run(), too
}

awaitable<void> PolledWatcher::run(std::shared_ptr<PolledWatcher> self) {
    while (!self->failure_ && !self->watch_.ended()) {
        auto [ec] = co_await self->readable_.async_wait(asio::posix::stream_descriptor::wait_read, kErrorTuple);
        if (ec) co_return;
        self->pull();
    }
}

void PolledWatcher::pull() {
    while (!failure_) {
        auto events = watch_.read();
        if (!events) failure_ = events.error();
        if (!events || events->empty()) return;
        for (const WatchEvent& event : *events) {
            if (events_.size() >= kMostWaiting) {
                failure_ =
                    Error(ErrorCode::data_loss,
                          fmt::format("more than {} changes in '{}' were waiting to be fetched and some "
                                      "are lost: list the directory and watch it anew",
                                      kMostWaiting, watch_.path()));
                return;
            }
            events_.push_back(watch_message(watch_, event, include_entry_, users_));
        }
    }
}

Result<std::vector<filesystem::FilesystemEvent>> PolledWatcher::take() {
    pull();
    if (events_.empty() && failure_) return std::unexpected(*failure_);
    std::vector<filesystem::FilesystemEvent> out(std::make_move_iterator(events_.begin()),
                                                 std::make_move_iterator(events_.end()));
    events_.clear();
    return out;
}

}  // namespace gb::agent
