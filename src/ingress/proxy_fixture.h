// SPDX-License-Identifier: Apache-2.0
// What tests of the ingress share: a proxy in front of a server that plays the service inside a sandbox.
#pragma once

#include <set>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/ids.h"
#include "control/fake_node.h"
#include "http/https_testing.h"
#include "ingress/proxy.h"
#include "ingress/signed_url.h"

namespace gb::ingress {

namespace asio = boost::asio;
using asio::awaitable;
using http::ClientConnection;
using http::Exchange;

class ProxyTest : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(make_dirs(dir_));
        store_ = *open_sqlite_store(dir_ / "db");
        ASSERT_TRUE(store_->add_team(team_));
        sandboxes_ = std::make_unique<Sandboxes>(io_.get_executor(), pool_, *store_, node_, SandboxesOptions{"seed", {}});
        ASSERT_TRUE(sandboxes_->start());
        proxy_ = std::make_unique<Proxy>(*sandboxes_);
        sandboxes_->on_gone([this](const std::string& id) { proxy_->cut(id); });
        front_ = std::make_unique<http::Server>(io_.get_executor(), [this](Exchange& e) -> awaitable<void> {
            auto route = find_route(e.head);
            if (route && !*route) route = find_signed_route(e, *sandboxes_);
            if (!route || !*route) {
                const Reply reply =
                    refusal(route ? Error(ErrorCode::invalid_argument, "no sandbox") : route.error());
                co_await e.response.send(reply.status, {}, reply.body);
                co_return;
            }
            co_await proxy_->handle(e, **route);
        });
        front_at_ = *front_->listen({asio::ip::make_address("127.0.0.1"), 0});
    }
    void TearDown() override {
        front_.reset();
        service_.reset();
        io_.restart();
        io_.run_for(std::chrono::milliseconds(50));
        pool_.join();
        ASSERT_TRUE(remove_tree(dir_));
    }
    void serve(http::Handler handler) {
        service_ = std::make_unique<http::Server>(io_.get_executor(), std::move(handler));
        service_port_ = service_->listen({asio::ip::make_address("127.0.0.1"), 0})->port();
    }
    void run(std::function<awaitable<void>()> body) {
        bool done = false;
        asio::co_spawn(io_, body(), [&](const std::exception_ptr& failure) {
            done = true;
            io_.stop();
            if (failure) std::rethrow_exception(failure);
        });
        io_.run_for(std::chrono::minutes(10));
        EXPECT_TRUE(done);
    }
    awaitable<std::string> sandbox(CreateSandbox request = {}) {
        request.template_ref = "base";
        auto view = co_await sandboxes_->create(team_, request);
        co_return view->record.id;
    }
    http::RequestHead head(std::string method, std::string target, const std::string& id, int port = 0) {
        return {std::move(method),
                std::move(target),
                {{"Host", "127.0.0.1"},
                 {"E2b-Sandbox-Id", id},
                 {"E2b-Sandbox-Port", std::to_string(port == 0 ? service_port_ : port)}}};
    }
    awaitable<ClientConnection> client() {
        auto connection = co_await ClientConnection::connect(front_at_, std::chrono::seconds(5));
        co_return *std::move(connection);
    }

    using TlsSocket = asio::ssl::stream<http::tcp::socket>;
    // The same front over TLS.
    awaitable<std::unique_ptr<TlsSocket>> tls_client(std::string_view protocols) {
        if (!tls_) {
            const auto pair = http::testing::make_certificate("proxy");
            EXPECT_TRUE(write_file_atomic(dir_ / "chain.pem", pair.certificate));
            EXPECT_TRUE(write_file_atomic(dir_ / "key.pem", pair.key));
            tls_ = *http::ServerTls::load({dir_ / "chain.pem", dir_ / "key.pem"});
            tls_at_ = *front_->listen_tls({asio::ip::make_address("127.0.0.1"), 0}, tls_);
        }
        asio::ssl::context context(asio::ssl::context::tls_client);
        auto client = std::make_unique<TlsSocket>(io_, context);
        SSL_set_alpn_protos(client->native_handle(), reinterpret_cast<const unsigned char*>(protocols.data()),
                            static_cast<unsigned>(protocols.size()));
        co_await client->next_layer().async_connect(tls_at_, asio::use_awaitable);
        co_await client->async_handshake(TlsSocket::client, asio::use_awaitable);
        co_return client;
    }

    std::filesystem::path dir_ = std::filesystem::temp_directory_path() / ("gb-proxy-" + random_id(10));
    asio::io_context io_;
    asio::thread_pool pool_{1};
    std::unique_ptr<Store> store_;
    FakeNode node_;
    Team team_{"t1", "One", "one", "pro"};
    std::unique_ptr<Sandboxes> sandboxes_;
    std::unique_ptr<Proxy> proxy_;
    std::unique_ptr<http::Server> front_, service_;
    std::shared_ptr<http::ServerTls> tls_;
    http::tcp::endpoint front_at_, tls_at_;
    int service_port_ = 0;
};

}  // namespace gb::ingress
