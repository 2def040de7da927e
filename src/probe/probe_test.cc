// SPDX-License-Identifier: Apache-2.0
// Attempts against servers of this test on loopback.
#include "probe/probe.h"

#include <array>
#include <functional>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace gb::probe {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 2s;

// A socket on a free port of loopback, and a thread that serves it until the end.
class Peer {
  public:
    Peer(int type, std::function<void(int fd)> serve) : fd_(::socket(AF_INET, type | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
        EXPECT_EQ(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
        port_ = ntohs(address.sin_port);
        if (type == SOCK_STREAM) EXPECT_EQ(::listen(fd_.get(), 8), 0);
        thread_ = std::jthread([this, type, serve = std::move(serve)](const std::stop_token& over) {
            while (!over.stop_requested()) {
                pollfd waiting{fd_.get(), POLLIN, 0};
                if (::poll(&waiting, 1, 20) <= 0) continue;
                if (type == SOCK_STREAM) {
                    UniqueFd peer(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
                    serve(peer.get());
                } else {
                    serve(fd_.get());
                }
            }
        });
    }
    [[nodiscard]] std::uint16_t port() const { return port_; }

  private:
    UniqueFd fd_;
    std::uint16_t port_ = 0;
    std::jthread thread_;
};

std::string read_some(int fd) {
    std::array<char, 2048> buffer{};
    const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
    return n > 0 ? std::string(buffer.data(), static_cast<std::size_t>(n)) : "";
}

Outcome http(std::string_view answer) {
    Peer peer(SOCK_STREAM, [&](int fd) {
        const std::string request = read_some(fd);
        EXPECT_TRUE(request.contains("\r\nHost: ok.example.com\r\n")) << request;
        (void)!::write(fd, answer.data(), answer.size());
    });
    return attempt({Way::http, "127.0.0.1", peer.port(), "ok.example.com", ""}, kPatience);
}

TEST(Attempt, AConnectionThatIsRefusedOrCutIsClosed) {
    Peer quiet(SOCK_STREAM, [](int fd) { (void)read_some(fd); });
    EXPECT_EQ(attempt({Way::tcp, "127.0.0.1", quiet.port(), "", ""}, kPatience).state, State::open);
    Peer cuts(SOCK_STREAM, [](int fd) {
        const linger none{1, 0};
        ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    });
    EXPECT_EQ(attempt({Way::tcp, "127.0.0.1", cuts.port(), "", ""}, kPatience).state, State::closed);
    EXPECT_EQ(attempt({Way::tls, "127.0.0.1", cuts.port(), "x.example", ""}, kPatience).state, State::closed);
    Peer gone(SOCK_DGRAM, [](int) {});
    EXPECT_EQ(attempt({Way::tcp, "127.0.0.1", gone.port(), "", ""}, kPatience).state, State::closed);
}

TEST(Attempt, AnAnswerOfTheProxyIsNotOneOfTheServer) {
    EXPECT_EQ(http("HTTP/1.1 403 Forbidden\r\nServer: other\r\n\r\n").state, State::open);
    EXPECT_EQ(
        http("HTTP/1.1 403 Forbidden\r\nProxy-Status: glovebox; error=http_request_denied\r\n\r\n").state,
        State::closed);
    EXPECT_EQ(http("").state, State::closed);
}

TEST(Attempt, DatagramsNeedAnAnswer) {
    Peer echo(SOCK_DGRAM, [](int fd) {
        std::array<char, 2048> buffer{};
        sockaddr_in from{};
        socklen_t size = sizeof from;
        const ssize_t n =
            ::recvfrom(fd, buffer.data(), buffer.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
        (void)::sendto(fd, buffer.data(), static_cast<std::size_t>(n), 0, reinterpret_cast<sockaddr*>(&from),
                       size);
    });
    EXPECT_EQ(attempt({Way::udp, "127.0.0.1", echo.port(), "", ""}, kPatience).state, State::open);
    EXPECT_EQ(attempt({Way::quic, "127.0.0.1", echo.port(), "", ""}, kPatience).state, State::open);
    std::uint16_t port = 0;
    {
        port = Peer(SOCK_DGRAM, [](int) {}).port();
    }
    EXPECT_EQ(attempt({Way::udp, "127.0.0.1", port, "", ""}, kPatience).state, State::closed)
        << "ICMP says so";
    Peer silent(SOCK_DGRAM, [](int fd) { (void)read_some(fd); });
    EXPECT_EQ(attempt({Way::quic, "127.0.0.1", silent.port(), "", ""}, 300ms).state, State::closed);
}

TEST(Attempt, EchoesOfLoopbackAreAnswered) {
    const Outcome outcome = attempt({Way::icmp, "127.0.0.1", 0, "", ""}, kPatience);
    if (outcome.state == State::not_tried) GTEST_SKIP() << outcome.detail;
    EXPECT_EQ(outcome.state, State::open) << outcome.detail;
}

TEST(Attempt, WhatIsNotThereIsClosedAndManyKeepTheirOrder) {
    Peer quiet(SOCK_STREAM, [](int fd) { (void)read_some(fd); });
    std::vector<Probe> probes;
    for (int i = 0; i < 40; ++i)
        probes.push_back(i % 2 == 0 ? Probe{Way::tcp, "127.0.0.1", quiet.port(), "", ""}
                                    : Probe{Way::dns_udp, "127.0.0.1", 0, "..", ""});
    const auto outcomes = attempt_all(probes, kPatience);
    ASSERT_EQ(outcomes.size(), probes.size());
    for (std::size_t i = 1; i < outcomes.size(); i += 2) EXPECT_EQ(outcomes[i].state, State::closed);
    EXPECT_EQ(attempt({Way::tcp, "no address", 1, "", ""}, kPatience).state, State::closed);
}

}  // namespace
}  // namespace gb::probe
