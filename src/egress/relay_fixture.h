// SPDX-License-Identifier: Apache-2.0
// For tests of the relay: a guest, a relay and upstreams that do as they are told, over TCP on the loopback.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "egress/http_relay.h"
#include "http/socket_pair_testing.h"

namespace gb::egress {

namespace asio = http::asio;
using http::awaitable;
using http::Stream;
using http::tcp;
// One end of a connection, for a test that writes and reads by hand.
class Peer {
  public:
    explicit Peer(tcp::socket socket) : stream_(std::make_shared<http::TcpStream>(std::move(socket))) {}
    explicit Peer(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}

    awaitable<bool> send(std::string text) {
        auto [ec, n] = co_await stream_->write(asio::buffer(text));
        co_return !ec;
    }
    // All up to and with `mark`; less at the end of the connection.
    awaitable<std::string> until(std::string mark) {
        for (;;) {
            if (const std::size_t at = input_.find(mark); at != std::string::npos) {
                std::string out = input_.substr(0, at + mark.size());
                input_.erase(0, out.size());
                co_return out;
            }
            if (!co_await fill()) co_return std::exchange(input_, "");
        }
    }
    awaitable<std::string> head() { return until("\r\n\r\n"); }
    awaitable<std::string> exactly(std::size_t count) {
        while (input_.size() < count && co_await fill()) {
        }
        std::string out = input_.substr(0, count);
        input_.erase(0, out.size());
        co_return out;
    }
    awaitable<std::string> rest() {
        while (co_await fill()) {
        }
        co_return std::exchange(input_, "");
    }
    void end() {
        boost::system::error_code ignored;
        stream_->socket().shutdown(tcp::socket::shutdown_send, ignored);
    }
    void close() { stream_->close(); }
    Stream& stream() { return *stream_; }
    // How the connection ended, once it has.
    [[nodiscard]] bool ended_properly() const { return last_ == asio::error::eof; }

  private:
    awaitable<bool> fill() {
        if (last_) co_return false;  // Asio would wait for another end, which never comes
        auto room = std::make_unique_for_overwrite<std::array<char, 65536>>();
        auto [ec, n] = co_await stream_->read_some(asio::buffer(*room));
        last_ = ec;
        input_.append(room->data(), n);
        co_return !ec;
    }
    std::shared_ptr<Stream> stream_;
    std::string input_;
    boost::system::error_code last_;
};

class RelayTest : public ::testing::Test {
  protected:
    // What the upstream of a host does with its n-th connection; by default it answers every request with its
    // host, target and body.
    using Upstream = std::function<awaitable<void>(Peer&, int n)>;

    void TearDown() override {
        relays_.clear();
        io_.restart();
        io_.run_for(std::chrono::seconds(5));
    }

    RelayOptions options() {
        RelayOptions out;
        out.route = [this](std::string_view host) { return route(std::string(host)); };
        return out;
    }
    awaitable<Result<Route>> route(std::string host) {
        asked_.push_back(host);
        if (const auto found = errors_.find(host); found != errors_.end())
            co_return std::unexpected(found->second);
        Route out;
        out.key = host;
        out.open = [this, host] { return open(host); };
        out.rules = rules_[host];
        out.secrets = [this](std::string_view name) -> Result<std::string> {
            const auto found = secrets_.find(std::string(name));
            if (found == secrets_.end()) return fail(ErrorCode::not_found, "no such secret");
            return found->second;
        };
        co_return out;
    }
    awaitable<Result<std::shared_ptr<Stream>>> open(std::string host) {
        if (const auto found = open_errors_.find(host); found != open_errors_.end())
            co_return std::unexpected(found->second);
        auto [near, far] = co_await http::testing::socket_pair(io_);
        const int n = opened_[host]++;
        asio::co_spawn(io_, play(host, Peer(std::move(far)), n), asio::detached);
        co_return std::make_shared<http::TcpStream>(std::move(near));
    }
    awaitable<void> play(std::string host, Peer peer, int n) {
        if (const auto found = upstreams_.find(host); found != upstreams_.end())
            co_await found->second(peer, n);
        else
            co_await echo(peer);
    }
    awaitable<void> echo(Peer& peer) {
        for (;;) {
            const std::string head = co_await peer.head();
            if (!head.ends_with("\r\n\r\n")) co_return;
            seen_.push_back(head);
            std::string body;
            if (head.find("chunked") != std::string::npos) {
                body = co_await peer.until("0\r\n\r\n");
            } else if (const std::size_t at = head.find("Content-Length: "); at != std::string::npos) {
                body = co_await peer.exactly(std::stoul(head.substr(at + 16)));
            }
            const std::string answer = head.substr(0, head.find("\r\n")) + "|" + body;
            if (!co_await peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(answer.size()) +
                                    "\r\nX-Up: 1\r\n\r\n" + answer))
                co_return;
        }
    }

    // The guest's end of a connection that a relay serves.
    awaitable<Peer> guest(std::optional<RelayOptions> with = {}) {
        auto [near, far] = co_await http::testing::socket_pair(io_);
        start(std::make_shared<http::TcpStream>(std::move(far)), with ? *std::move(with) : options());
        co_return Peer(std::move(near));
    }
    void start(std::shared_ptr<Stream> stream, RelayOptions with) {
        auto relay = std::make_shared<HttpRelay>(std::move(stream), std::move(with));
        relays_.push_back(relay);
        ++running_;
        asio::co_spawn(io_, relay->run(), [this](const std::exception_ptr& failure) {
            --running_;
            if (failure) std::rethrow_exception(failure);
        });
    }
    // Sends bytes as they are; all that comes back until the relay closes.
    awaitable<std::string> raw(std::string bytes, std::optional<RelayOptions> with = {}) {
        Peer peer = co_await guest(std::move(with));
        co_await peer.send(std::move(bytes));
        std::string out = co_await peer.rest();
        properly_ = peer.ended_properly();
        co_return out;
    }
    awaitable<void> wait_until(std::function<bool()> so) {
        asio::steady_timer pause(io_);
        while (!so()) {
            pause.expires_after(std::chrono::milliseconds(5));
            co_await pause.async_wait(asio::use_awaitable);
        }
    }
    void run(std::function<awaitable<void>()> body) {
        bool done = false;
        asio::co_spawn(io_, body(), [&](const std::exception_ptr& failure) {
            done = true;
            for (auto& relay : relays_) relay->stop();
            if (failure) std::rethrow_exception(failure);
        });
        io_.restart();
        io_.run_for(std::chrono::minutes(10));
        EXPECT_TRUE(done) << "the test did not come to its end";
        EXPECT_EQ(running_, 0) << "a relay did not end";
    }
    // An upstream that waits for one request's head and then says this.
    void answers(const std::string& host, std::string bytes, bool then_end = true) {
        upstreams_[host] = [this, bytes = std::move(bytes), then_end](Peer& peer, int) -> awaitable<void> {
            seen_.push_back(co_await peer.head());
            co_await peer.send(bytes);
            if (then_end) peer.end();
            co_await peer.rest();
        };
    }
    static std::string get(const std::string& host, const std::string& more = "") {
        return "GET /p HTTP/1.1\r\nHost: " + host + "\r\n" + more + "\r\n";
    }

    asio::io_context io_;
    std::vector<std::shared_ptr<HttpRelay>> relays_;
    std::map<std::string, Upstream> upstreams_;
    std::map<std::string, Error> errors_, open_errors_;
    std::map<std::string, std::vector<HeaderRule>> rules_;
    std::map<std::string, std::string> secrets_;
    std::map<std::string, int> opened_;
    std::vector<std::string> asked_, seen_;
    int running_ = 0;
    bool properly_ = false;  // whether the last raw() ended with a proper end
};

}  // namespace gb::egress
