// SPDX-License-Identifier: Apache-2.0
#include "probe/sockets.h"

#include <array>
#include <cerrno>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <poll.h>

namespace gb::probe {
namespace {

struct Address {
    sockaddr_storage storage{};
    socklen_t size = 0;
    [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Result<Address> address_of(const std::string& text, std::uint16_t port) {
    Address out;
    auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
    if (::inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        out.size = sizeof *v4;
    } else if (::inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        out.size = sizeof *v6;
    } else {
        return fail(ErrorCode::invalid_argument, fmt::format("'{}' is no address", text));
    }
    return out;
}

}  // namespace

bool wait_for(int fd, short events, Patience patience) {
    pollfd waiting{fd, events, 0};
    return ::poll(&waiting, 1, static_cast<int>(patience.count())) > 0;
}

Result<UniqueFd> connect_tcp(const std::string& address, std::uint16_t port, Patience patience) {
    GB_TRY_ASSIGN(const Address to, address_of(address, port));
    UniqueFd fd(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) return fail_errno("socket");
    if (::connect(fd.get(), to.get(), to.size) != 0 && errno != EINPROGRESS) return fail_errno("connect");
    if (!wait_for(fd.get(), POLLOUT, patience))
        return fail(ErrorCode::deadline_exceeded, "connect: no answer");
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    if (error != 0) return fail_errno("connect");
    return fd;
}

Result<UniqueFd> connect_datagram(int type, int protocol, const std::string& address, std::uint16_t port) {
    GB_TRY_ASSIGN(const Address to, address_of(address, port));
    UniqueFd fd(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol));
    if (!fd) return fail_errno("socket");
    const int on = 1;
    (void)::setsockopt(fd.get(), SOL_IP, IP_RECVERR, &on, sizeof on);
    if (::connect(fd.get(), to.get(), to.size) != 0) return fail_errno("connect");
    return fd;
}

Status send_all(int fd, std::string_view bytes, Patience patience) {
    while (!bytes.empty()) {
        const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n > 0) {
            bytes.remove_prefix(static_cast<std::size_t>(n));
        } else if (errno == EAGAIN) {
            if (!wait_for(fd, POLLOUT, patience))
                return fail(ErrorCode::deadline_exceeded, "send: no answer");
        } else if (errno != EINTR) {
            return fail_errno("send");
        }
    }
    return {};
}

Result<std::string> receive(int fd, Patience patience) {
    std::array<char, 4096> buffer{};
    for (;;) {
        const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
        if (n >= 0) return std::string(buffer.data(), static_cast<std::size_t>(n));
        if (errno == EINTR) continue;
        if (errno != EAGAIN) return fail_errno("receive");
        if (!wait_for(fd, POLLIN, patience)) return fail(ErrorCode::deadline_exceeded, "no answer");
    }
}

}  // namespace gb::probe
