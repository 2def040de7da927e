// SPDX-License-Identifier: Apache-2.0
// Bytes from one socket to another without a copy through this process, splice(2).
#pragma once

#include <cstdint>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb::http {

class SplicePipe {
  public:
    static Result<SplicePipe> open();

    // Waits for bytes, moves at most `most` of them, and returns how many; 0 when `from` has properly ended its direction.
    // On an error bytes may be lost, and neither socket carries the message any further.
    boost::asio::awaitable<Result<std::uint64_t>> move(boost::asio::ip::tcp::socket& from,
                                                       boost::asio::ip::tcp::socket& to, std::uint64_t most);

  private:
    SplicePipe(UniqueFd read, UniqueFd write) : read_(std::move(read)), write_(std::move(write)) {}
    UniqueFd read_, write_;
};

}  // namespace gb::http
