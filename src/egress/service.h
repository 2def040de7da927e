// SPDX-License-Identifier: Apache-2.0
// The gateways of a server's sandboxes, on a thread of their own: what sandboxes send and receive by name
// does not keep requests of clients waiting. All functions may be called on any thread but that one; they
// wait for it.
#pragma once

#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "egress/gateway.h"
#include "egress/upstream.h"

namespace gb::egress {

struct EgressOptions {
    net::Ceiling ceiling;
    std::vector<DnsEndpoint> resolvers;
    std::uint64_t descriptors = 1024;  // that the process may have
    std::filesystem::path trusted;  // PEM of authorities beside the system's; empty: none
};

// One sandbox's gateway; its end is the gateway's.
class EgressPort {
  public:
    ~EgressPort();
    EgressPort(const EgressPort&) = delete;
    EgressPort& operator=(const EgressPort&) = delete;

    void set_policy(net::EgressPolicy policy, std::shared_ptr<CertificateAuthority> authority);
    [[nodiscard]] std::uint64_t suppressed() const {
        return gateway_->suppressed();
    }  // decisions without a line

  private:
    friend class EgressService;
    EgressPort(asio::io_context& io, std::shared_ptr<Gateway> gateway)
        : io_(io), gateway_(std::move(gateway)) {}
    asio::io_context& io_;
    std::shared_ptr<Gateway> gateway_;
};

class EgressService {
  public:
    // Names are asked for in the network namespace of the calling thread. Errors: a bundle of authorities
    // that cannot be read.
    static Result<std::unique_ptr<EgressService>> start(EgressOptions options);
    ~EgressService();  // after all ports
    EgressService(const EgressService&) = delete;
    EgressService& operator=(const EgressService&) = delete;

    // `parts.decided` and `parts.secrets` are called on the service's thread: who waits for it must hold
    // nothing that they need.
    Result<std::unique_ptr<EgressPort>> attach(GatewayParts parts);

  private:
    EgressService() = default;
    asio::io_context io_{1};
    asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(io_);
    GatewayShared shared_;
    std::shared_ptr<Upstream> upstream_;
    std::thread thread_;
    std::future<void> ended_;  // of the thread
};

}  // namespace gb::egress
