// SPDX-License-Identifier: Apache-2.0
#include "control/host_lookup.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/error_tuple.h"

namespace gb {

namespace asio = boost::asio;

namespace {

constexpr int kMostAtOnce = 64;  // threads of this process that a silent name server may hold
std::atomic<int> lookups_under_way{0};

// The right to one of those threads.
class Place {
  public:
    static std::optional<Place> take() {
        Place place;
        if (lookups_under_way.fetch_add(1) >= kMostAtOnce) return std::nullopt;  // given back by the destructor
        return place;
    }
    Place(Place&& other) noexcept : held_(std::exchange(other.held_, false)) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
        if (held_) --lookups_under_way;
    }

  private:
    Place() = default;
    bool held_ = true;
};

// Shared by the thread that asks and the coroutine that waits, whichever ends first.
struct Lookup {
    std::mutex mutex;
    asio::steady_timer* waiting = nullptr;  // of the coroutine, which is still there; used on its executor only
    std::optional<Result<HostAddresses>> answer;

    void leave() {
        std::lock_guard lock(mutex);
        waiting = nullptr;
    }
    static void finish(const std::shared_ptr<Lookup>& self, Result<HostAddresses> found) {
        std::lock_guard lock(self->mutex);
        if (self->waiting == nullptr) return;
        self->answer = std::move(found);
        asio::post(self->waiting->get_executor(), [self] {
            std::lock_guard again(self->mutex);
            if (self->waiting != nullptr) self->waiting->cancel();
        });
    }
};

// However the coroutine ends, the thread does not touch its timer any more.
struct Leaving {
    std::shared_ptr<Lookup> lookup;
    explicit Leaving(std::shared_ptr<Lookup> of) : lookup(std::move(of)) {}
    Leaving(const Leaving&) = delete;
    Leaving& operator=(const Leaving&) = delete;
    ~Leaving() { lookup->leave(); }
};

}  // namespace

Result<HostAddresses> resolve_host(const std::string& host) {
    asio::io_context io(1);
    asio::ip::tcp::resolver resolver(io);
    boost::system::error_code ec;
    const auto found = resolver.resolve(host, "", ec);
    if (ec) return fail(ErrorCode::not_found, ec.message());
    HostAddresses out;
    for (const auto& entry : found) out.push_back(entry.endpoint().address());
    if (out.empty()) return fail(ErrorCode::not_found, "it has no address");
    return out;
}

asio::awaitable<Result<HostAddresses>> look_up_host(std::string host, std::chrono::milliseconds limit,
                                                    std::function<Result<HostAddresses>(const std::string&)> resolve) {
    auto place = Place::take();
    if (!place) co_return fail(ErrorCode::unavailable, "too many names are being looked up");
    asio::steady_timer timer(co_await asio::this_coro::executor, limit);
    auto lookup = std::make_shared<Lookup>();
    lookup->waiting = &timer;
    const Leaving leaving(lookup);
    std::thread([lookup, host = std::move(host), resolve = std::move(resolve), place = std::move(place)]() mutable {
        auto found = resolve(host);
        place.reset();  // before anybody knows: who has the answer may ask for the next name
        Lookup::finish(lookup, std::move(found));
    }).detach();
    co_await timer.async_wait(kErrorTuple);
    std::lock_guard lock(lookup->mutex);
    if (!lookup->answer) co_return fail(ErrorCode::deadline_exceeded, fmt::format("no answer within {} ms", limit.count()));
    co_return *std::move(lookup->answer);
}

}  // namespace gb
