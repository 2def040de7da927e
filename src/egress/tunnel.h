// SPDX-License-Identifier: Apache-2.0
// Bytes both ways between two connections, as they are.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "egress/counting_stream.h"

namespace gb::egress {

struct TunnelOptions {
    std::chrono::seconds half_open{300};  // without a byte, once one side has ended its direction
};

// Returns when both directions have ended; an end is passed on as one, a break cuts both sides. `counters`:
// up is from guest to upstream. Sockets may be closed by others at any time, which ends it. Many bytes are
// spliced, few are copied: a pipe is made for who needs it. One executor with one thread.
boost::asio::awaitable<void> tunnel(std::shared_ptr<boost::asio::ip::tcp::socket> guest,
                                    std::shared_ptr<boost::asio::ip::tcp::socket> upstream,
                                    std::shared_ptr<ByteCounters> counters, TunnelOptions options = {});

// Ends a connection with a reset: the other side sees that this was no proper end.
void reset(boost::asio::ip::tcp::socket& socket);

}  // namespace gb::egress
