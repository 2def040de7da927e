// SPDX-License-Identifier: Apache-2.0
// Looks a host name up with the system's resolver, without waiting for it longer than is wanted. That resolver cannot be
// interrupted and Asio asks it for one name after the other, so a name whose servers are silent would hold up all others:
// each lookup has a thread of its own here, which is left behind when the time is over.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/address.hpp>

#include "base/result.h"

namespace gb {

using HostAddresses = std::vector<boost::asio::ip::address>;

// Blocks as long as the system's resolver likes. not_found when the name leads nowhere, or nobody answers.
Result<HostAddresses> resolve_host(const std::string& host);

// The result of `resolve`, which runs on another thread and may outlive the call; deadline_exceeded when there is none
// within `limit`; unavailable while too many are under way in this process.
boost::asio::awaitable<Result<HostAddresses>> look_up_host(
    std::string host, std::chrono::milliseconds limit,
    std::function<Result<HostAddresses>(const std::string&)> resolve = resolve_host);

}  // namespace gb
