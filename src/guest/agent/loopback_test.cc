// SPDX-License-Identifier: Apache-2.0
// The host's way to services on the guest's loopback.
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/unique_fd.h"
#include "guest/agent/agent_test_support.h"

namespace gb::agent {
namespace {

// Listens on ::1 alone, takes one connection, sends back what it gets in upper case until its end.
class EchoOnIpv6 {
  public:
    EchoOnIpv6() : fd_(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in6 address{};
        address.sin6_family = AF_INET6;
        address.sin6_addr = in6addr_loopback;
        EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(fd_.get(), 1), 0);
        socklen_t length = sizeof address;
        ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &length);
        port_ = ntohs(address.sin6_port);
        thread_ = std::thread([this] {
            const UniqueFd peer(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            char buffer[4096];
            for (ssize_t n; (n = ::read(peer.get(), buffer, sizeof buffer)) > 0;) {
                for (ssize_t i = 0; i < n; ++i) buffer[i] = static_cast<char>(std::toupper(buffer[i]));
                if (::write(peer.get(), buffer, static_cast<std::size_t>(n)) != n) return;
            }
        });
    }
    ~EchoOnIpv6() {
        ::shutdown(fd_.get(), SHUT_RDWR);
        thread_.join();
    }
    [[nodiscard]] int port() const { return port_; }

  private:
    UniqueFd fd_;
    int port_ = 0;
    std::thread thread_;
};

UniqueFd dial(std::uint16_t port) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
}

std::string read_to_end(int fd) {
    std::string out;
    char buffer[4096];
    for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<std::size_t>(n));
    return out;
}

std::string request_for(int port) {
    return "GET /loopback?port=" + std::to_string(port) +
           " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n";
}

TEST(Loopback, CarriesBytesBothWaysUntilBothHaveEnded) {
    const TestAgent agent;
    const EchoOnIpv6 service;
    const UniqueFd client = dial(agent.endpoint().port());
    const std::string sent = request_for(service.port()) + "early ";
    ASSERT_EQ(::write(client.get(), sent.data(), sent.size()), static_cast<ssize_t>(sent.size()));
    ASSERT_EQ(::write(client.get(), "late", 4), 4);
    ::shutdown(client.get(), SHUT_WR);
    const std::string answer = read_to_end(client.get());
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 101 ")) << answer;
    EXPECT_TRUE(answer.ends_with("\r\n\r\nEARLY LATE")) << answer;
}

TEST(Loopback, ClosedPortsAndMalformedOnesAreAnswered) {
    const TestAgent agent;
    TestClient client(agent);
    const http::Headers upgrade{{"Connection", "Upgrade"}, {"Upgrade", "tcp"}};
    EXPECT_EQ(client.send("GET", "/loopback?port=1", upgrade).head.status, 502);
    for (const char* path : {"/loopback", "/loopback?port=0", "/loopback?port=65536", "/loopback?port=8x"})
        EXPECT_EQ(client.send("GET", path, upgrade).head.status, 400) << path;
    EXPECT_EQ(client.send("GET", "/loopback?port=80").head.status, 400);
}

TEST(Loopback, IsForTheControlPlaneAlone) {
    const TestAgent agent([](AgentOptions& options) { options.allow_local_init = false; });
    TestClient client(agent);
    EXPECT_EQ(client.send("GET", "/loopback?port=80", {{"Connection", "Upgrade"}, {"Upgrade", "tcp"}}).head.status, 403);
}

}  // namespace
}  // namespace gb::agent
