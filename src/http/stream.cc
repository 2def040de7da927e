// SPDX-License-Identifier: Apache-2.0
#include "http/stream.h"

#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace gb::http {
namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);

}  // namespace

Stream::Io TcpStream::read_some(asio::mutable_buffer room) {
    return socket_.async_read_some(room, kToken);
}

Stream::Io TcpStream::write(asio::const_buffer bytes) {
    return asio::async_write(socket_, bytes, kToken);
}

Stream::Io TcpStream::write(std::span<const asio::const_buffer> pieces) {
    return asio::async_write(socket_, pieces, kToken);
}

awaitable<void> TcpStream::shutdown_send() {
    boost::system::error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    co_return;
}

bool TcpStream::quiet() {
    char c = 0;
    const ssize_t n = ::recv(socket_.native_handle(), &c, 1, MSG_PEEK | MSG_DONTWAIT);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void TcpStream::close() {
    boost::system::error_code ignored;
    socket_.close(ignored);
}

}  // namespace gb::http
