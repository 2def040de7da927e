// SPDX-License-Identifier: Apache-2.0
#include "egress/bench_relay.h"

#include <array>

#include <arpa/inet.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace gb::egress {
namespace {

constexpr int kPiece = 1 << 20;

void move(int from, int to) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    const UniqueFd read(ends[0]), write(ends[1]);
    (void)::fcntl(write.get(), F_SETPIPE_SZ, kPiece);
    for (ssize_t n; (n = ::splice(from, nullptr, write.get(), nullptr, kPiece, SPLICE_F_MOVE)) > 0;) {
        for (ssize_t moved; n > 0; n -= moved) {
            moved = ::splice(read.get(), nullptr, to, nullptr, static_cast<std::size_t>(n), SPLICE_F_MOVE);
            // The other direction waits for what cannot come any more.
            if (moved <= 0) return (void)::shutdown(from, SHUT_RDWR);
        }
    }
    ::shutdown(to, SHUT_WR);
}

void carry(const UniqueFd& guest) {
    sockaddr_in to{};
    socklen_t size = sizeof to;
    const int on = 1;
    const UniqueFd upstream(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    for (const UniqueFd* fd : {&guest, &upstream})
        ::setsockopt(fd->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::getsockopt(guest.get(), SOL_IP, SO_ORIGINAL_DST, &to, &size) != 0 ||
        ::connect(upstream.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
        return;
    std::thread down([&] { move(upstream.get(), guest.get()); });
    move(guest.get(), upstream.get());
    down.join();
}

}  // namespace

Result<std::unique_ptr<BenchRelay>> BenchRelay::start() {
    std::unique_ptr<BenchRelay> out(new BenchRelay());
    out->listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in any{.sin_family = AF_INET, .sin_port = htons(kPort), .sin_addr = {}, .sin_zero = {}};
    if (::bind(out->listener_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 ||
        ::listen(out->listener_.get(), 128) != 0)
        return fail_errno("listen for the relay");
    out->acceptor_ = std::thread([relay = out.get()] { relay->accept(); });
    return out;
}

BenchRelay::~BenchRelay() {
    stopping_ = true;
    if (acceptor_.joinable()) acceptor_.join();
    for (Connection& connection : connections_) connection.thread.join();
}

void BenchRelay::accept() {
    while (!stopping_) {
        std::erase_if(connections_, [](Connection& c) {
            if (c.ended) c.thread.join();
            return c.ended.load();
        });
        pollfd p{listener_.get(), POLLIN, 0};
        if (::poll(&p, 1, 20) <= 0) continue;
        UniqueFd guest(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        Connection& connection = connections_.emplace_back();
        connection.thread = std::thread([&connection, guest = std::move(guest)] {
            carry(guest);
            connection.ended = true;
        });
    }
}

}  // namespace gb::egress
