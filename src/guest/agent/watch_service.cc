// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/watch_service.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>

#include "base/ids.h"
#include "base/offload.h"
#include "guest/agent/folder_watch.h"
#include "guest/agent/polled_watcher.h"

namespace gb::agent {
namespace {

using namespace filesystem;
using Clock = std::chrono::steady_clock;

// Clients that died without removing their watchers must not use up the machine.
constexpr std::size_t kMostWatchers = 1024;

// The two requests have the same fields.
template <class Request>
awaitable<Result<FolderWatch>> open_watch(const Exchange& exchange, const Request& request,
                                          const Settings& settings, UserCache& users,
                                          asio::thread_pool& pool) {
    GB_CO_TRY_ASSIGN(const Caller caller, identify(exchange.head, {}, settings, users));
    GB_CO_TRY_ASSIGN(std::string path, resolve_file_path(request.path(), settings, *caller.user));
    const WatchOptions options{.recursive = request.recursive(),
                               .allow_network_mounts = request.allow_network_mounts()};
    auto work = [path = std::move(path), options] { return FolderWatch::open(path, options); };
    co_return co_await offload(pool, std::move(work));
}

class Watcher {
  public:
    Watcher(StreamWriter& writer, FolderWatch watch, bool include_entry, UserCache& users)
        : writer_(writer), watch_(std::move(watch)), include_entry_(include_entry), users_(users) {}

    // Ends when the stream has ended or cannot go on.
    awaitable<void> run(std::chrono::seconds keepalive, std::optional<Clock::time_point> deadline) {
        const auto executor = co_await asio::this_coro::executor;
        asio::posix::stream_descriptor readable(executor, watch_.fd());
        struct GiveBack {
            asio::posix::stream_descriptor& descriptor;
            ~GiveBack() { descriptor.release(); }
        } give_back{readable};
        asio::steady_timer timer(executor);
        WatchDirResponse start;
        start.mutable_start();
        if (!co_await writer_.send(start)) co_return;
        for (auto ping = Clock::now() + keepalive;;) {
            const auto events = watch_.read();
            if (!events) {
                co_await writer_.end(std::unexpected(events.error()));
                co_return;
            }
            if (!events->empty()) {
                if (!co_await send(*events)) co_return;
                ping = Clock::now() + keepalive;
            }
            if (watch_.ended()) {
                co_await writer_.end({});
                co_return;
            }
            if (deadline && Clock::now() >= *deadline) {
                co_await writer_.end(fail(ErrorCode::deadline_exceeded, "the watch ran into its time limit"));
                co_return;
            }
            if (Clock::now() >= ping) {
                WatchDirResponse message;
                message.mutable_keepalive();
                if (!co_await writer_.send(message)) co_return;
                ping = Clock::now() + keepalive;
            }
            if (!events->empty()) continue;
            using namespace asio::experimental::awaitable_operators;
            timer.expires_at(deadline ? std::min(ping, *deadline) : ping);
            co_await (readable.async_wait(asio::posix::stream_descriptor::wait_read, kErrorTuple) ||
                      timer.async_wait(kErrorTuple));
            // Whoever cancelled this (the client has gone) must be heard, although waiting swallows it.
            if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
                co_return;
        }
    }

  private:
    awaitable<Status> send(const std::vector<WatchEvent>& events) {
        std::string frames;
        for (const WatchEvent& event : events) {
            WatchDirResponse message;
            *message.mutable_filesystem() = watch_message(watch_, event, include_entry_, users_);
            writer_.add_frame(frames, message);
        }
        co_return co_await writer_.write(frames);
    }

    StreamWriter& writer_;
    FolderWatch watch_;
    bool include_entry_;
    UserCache& users_;
};

}  // namespace

WatchService::~WatchService() {
    for (const auto& [id, watcher] : watchers_) watcher->stop();
}

awaitable<bool> WatchService::serve(Exchange& exchange, std::string_view method) {
    if (method == "WatchDir") {
        auto handle = [this](StreamWriter& w, const WatchDirRequest& r) { return watch_dir(w, r); };
        co_await serve_stream<WatchDirRequest>(exchange, handle);
    } else if (method == "CreateWatcher") {
        auto handle = [this, &exchange](const CreateWatcherRequest& r) {
            return create_watcher(exchange, r);
        };
        co_await serve_unary<CreateWatcherRequest>(exchange, handle);
    } else if (method == "GetWatcherEvents") {
        auto handle =
            [this](const GetWatcherEventsRequest& r) -> awaitable<Result<GetWatcherEventsResponse>> {
            co_return get_watcher_events(r);
        };
        co_await serve_unary<GetWatcherEventsRequest>(exchange, handle);
    } else if (method == "RemoveWatcher") {
        auto handle = [this](const RemoveWatcherRequest& r) -> awaitable<Result<RemoveWatcherResponse>> {
            co_return remove_watcher(r);
        };
        co_await serve_unary<RemoveWatcherRequest>(exchange, handle);
    } else {
        co_return false;
    }
    co_return true;
}

awaitable<Status> WatchService::watch_dir(StreamWriter& writer, const WatchDirRequest& request) {
    Exchange& exchange = writer.exchange();
    std::optional<Clock::time_point> deadline;
    if (const auto timeout = call_timeout(exchange.head.headers)) deadline = Clock::now() + *timeout;
    GB_CO_TRY_ASSIGN(FolderWatch watch, co_await open_watch(exchange, request, settings_, users_, pool_));
    using namespace asio::experimental::awaitable_operators;
    Watcher watcher(writer, std::move(watch), request.include_entry(), users_);
    co_await (watcher.run(keepalive_interval(exchange.head.headers), deadline) ||
              exchange.response.peer_closed());
    co_return Status{};
}

awaitable<Result<CreateWatcherResponse>> WatchService::create_watcher(const Exchange& exchange,
                                                                      const CreateWatcherRequest& request) {
    const Error too_many(ErrorCode::resource_exhausted,
                         fmt::format("there are {} watchers already: remove some of them", kMostWatchers));
    if (watchers_.size() >= kMostWatchers) co_return std::unexpected(too_many);
    GB_CO_TRY_ASSIGN(FolderWatch watch, co_await open_watch(exchange, request, settings_, users_, pool_));
    if (watchers_.size() >= kMostWatchers) co_return std::unexpected(too_many);
    auto watcher = std::make_shared<PolledWatcher>(co_await asio::this_coro::executor, std::move(watch),
                                                   request.include_entry(), users_);
    watcher->begin();
    CreateWatcherResponse response;
    response.set_watcher_id("w" + random_id(16));
    watchers_[response.watcher_id()] = std::move(watcher);
    co_return response;
}

Result<GetWatcherEventsResponse> WatchService::get_watcher_events(const GetWatcherEventsRequest& request) {
    const auto watcher = watchers_.find(request.watcher_id());
    if (watcher == watchers_.end())
        return fail(ErrorCode::not_found, fmt::format("watcher with id {} not found", request.watcher_id()));
    GB_TRY_ASSIGN(std::vector<FilesystemEvent> events, watcher->second->take());
    GetWatcherEventsResponse response;
    for (FilesystemEvent& event : events) *response.add_events() = std::move(event);
    return response;
}

Result<RemoveWatcherResponse> WatchService::remove_watcher(const RemoveWatcherRequest& request) {
    const auto watcher = watchers_.find(request.watcher_id());
    if (watcher == watchers_.end())
        return fail(ErrorCode::not_found, fmt::format("watcher with id {} not found", request.watcher_id()));
    watcher->second->stop();
    watchers_.erase(watcher);
    return RemoveWatcherResponse();
}

}  // namespace gb::agent
