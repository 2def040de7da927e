// SPDX-License-Identifier: Apache-2.0
#include "ingress/upstreams.h"

#include "base/clock.h"

namespace gb::ingress {
namespace {

// Shorter than the agent's own idle limit, so that a kept connection is not closed under a request.
constexpr std::int64_t kIdleLimitMs = 60'000;
constexpr std::size_t kIdlePerPort = 32;

}  // namespace

Upstreams::Lease::Lease(Upstreams& owner, Route route, http::ClientConnection connection, bool kept)
    : owner_(owner), route_(std::move(route)), connection_(std::move(connection)), kept_(kept) {
    owner_.sandboxes_[route_.sandbox_id].leases.insert(this);
}

Upstreams::Lease::~Lease() {
    auto found = owner_.sandboxes_.find(route_.sandbox_id);
    if (found == owner_.sandboxes_.end()) return;
    found->second.leases.erase(this);
    if (found->second.leases.empty() && found->second.idle.empty()) owner_.sandboxes_.erase(found);
}

void Upstreams::Lease::cut() {
    cut_ = true;
    boost::system::error_code ignored;
    // Nobody is left to acknowledge anything: without this the kernel would keep trying.
    connection_.socket().set_option(boost::asio::socket_base::linger(true, 0), ignored);
    connection_.close();
    for (http::Stream* stream : raw_)
        if (stream != nullptr) stream->close();
}

boost::asio::awaitable<Result<std::unique_ptr<Upstreams::Lease>>> Upstreams::acquire(Route route, Kept kept) {
    auto found = sandboxes_.find(route.sandbox_id);
    if (kept == Kept::allowed && found != sandboxes_.end()) {
        auto& idle = found->second.idle[route.port];
        while (!idle.empty()) {
            Idle candidate = std::move(idle.back());
            idle.pop_back();
            if (now_ms() - candidate.since_ms < kIdleLimitMs && candidate.connection.still_open())
                co_return std::make_unique<Lease>(*this, std::move(route), std::move(candidate.connection),
                                                   true);
        }
    }
    GB_CO_TRY_ASSIGN(auto socket, co_await node_.connect(route.sandbox_id, route.port));
    co_return std::make_unique<Lease>(*this, std::move(route), http::ClientConnection(std::move(socket)), false);
}

void Upstreams::give_back(std::unique_ptr<Lease> lease) {
    if (lease->was_cut() || !lease->connection_.reusable()) return;
    auto& idle = sandboxes_[lease->route_.sandbox_id].idle[lease->route_.port];
    if (idle.size() < kIdlePerPort) idle.push_back({std::move(lease->connection_), now_ms()});
}

void Upstreams::cut(const std::string& sandbox_id) {
    auto found = sandboxes_.find(sandbox_id);
    if (found == sandboxes_.end()) return;
    for (Lease* lease : found->second.leases) lease->cut();
    found->second.idle.clear();
    if (found->second.leases.empty()) sandboxes_.erase(found);
}

}  // namespace gb::ingress
