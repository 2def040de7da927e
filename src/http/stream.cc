// SPDX-License-Identifier: Apache-2.0
#include "http/stream.h"

#include <sys/socket.h>

#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/error_tuple.h"

namespace gb::http {
namespace {

}  // namespace

Stream::Io TcpStream::read_some(asio::mutable_buffer room) {
    return socket_.async_read_some(room, kErrorTuple);
}

Stream::Io TcpStream::write(asio::const_buffer bytes) {
    return asio::async_write(socket_, bytes, kErrorTuple);
}

Stream::Io TcpStream::write(std::span<const asio::const_buffer> pieces) {
    return asio::async_write(socket_, pieces, kErrorTuple);
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
