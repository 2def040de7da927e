// SPDX-License-Identifier: Apache-2.0
#include "egress/service.h"

#include <future>

#include <boost/asio/post.hpp>

namespace gb::egress {
namespace {

constexpr std::chrono::milliseconds kPatience{500};

// Runs `act` on the service's thread and waits for its result.
template <class F>
auto on_thread(asio::io_context& io, F act) {
    std::packaged_task<decltype(act())()> task(std::move(act));
    auto done = task.get_future();
    asio::post(io, [&task] { task(); });
    return done.get();
}

}  // namespace

EgressPort::~EgressPort() {
    on_thread(io_, [this] {
        gateway_->stop();
        gateway_.reset();
    });
}

void EgressPort::set_policy(net::EgressPolicy policy, std::shared_ptr<CertificateAuthority> authority) {
    on_thread(io_, [&] { gateway_->set_policy(std::move(policy), std::move(authority)); });
}

Result<std::unique_ptr<EgressService>> EgressService::start(EgressOptions options) {
    std::unique_ptr<EgressService> out(new EgressService());
    out->shared_.executor = out->io_.get_executor();
    out->shared_.ceiling = std::move(options.ceiling);
    out->shared_.budget =
        std::make_shared<ConnectionBudget>(ConnectionBudget::of_descriptors(options.descriptors));
    GB_TRY_ASSIGN(out->shared_.tls, http::ClientTls::make(options.trusted));
    UpstreamOptions upstream;
    upstream.servers = std::move(options.resolvers);
    out->upstream_ = std::make_shared<Upstream>(out->shared_.executor, std::move(upstream));
    out->shared_.resolver = std::make_shared<Resolver>(out->upstream_);
    std::promise<void> ended;
    out->ended_ = ended.get_future();
    out->thread_ = std::thread([service = out.get(), ended = std::move(ended)]() mutable {
        service->io_.run();
        ended.set_value();
    });
    return out;
}

EgressService::~EgressService() {
    if (!thread_.joinable()) return;
    // What was cut ends by itself, and then the thread does; what still waits for a connection is not waited
    // for.
    on_thread(io_, [this] { upstream_->stop(); });
    work_.reset();
    if (ended_.wait_for(kPatience) != std::future_status::ready) io_.stop();
    thread_.join();
}

Result<std::unique_ptr<EgressPort>> EgressService::attach(GatewayParts parts) {
    return on_thread(io_, [&]() -> Result<std::unique_ptr<EgressPort>> {
        GB_TRY_ASSIGN(auto gateway, Gateway::start(shared_, std::move(parts)));
        return std::unique_ptr<EgressPort>(new EgressPort(io_, std::move(gateway)));
    });
}

}  // namespace gb::egress
