// SPDX-License-Identifier: Apache-2.0
// Where a webhook leads, before it is taken: one that may not be delivered to is refused when it is made, not silently
// later. The sender judges the address of every attempt all the same, because names change.
#pragma once

#include <string>

#include <boost/asio/awaitable.hpp>

#include "base/result.h"

namespace gb {

// invalid_argument, with the name of the setting that allows it, when `url` names a private address or a host whose
// addresses are all private. A name that leads nowhere now, or is not resolved within a few seconds, passes: it may lead
// somewhere later, and the deliveries say what became of them. `url` is well-formed.
boost::asio::awaitable<Status> check_webhook_target(std::string url);

}  // namespace gb
