// SPDX-License-Identifier: Apache-2.0
// Where a webhook leads, before it is taken: one that may not be delivered to is refused when it is made, not silently
// later. The sender judges the address of every attempt all the same, because names change.
#pragma once

#include <string>

#include <boost/asio/awaitable.hpp>

#include "base/result.h"

namespace gb {

// invalid_argument, with the name of the setting that allows it, when `url` names a private address or a host whose
// addresses are all private, unless these are allowed. A name that leads nowhere now, or is not resolved within a few
// seconds, passes, because it may lead somewhere later: the answer is what to tell who made the webhook, or empty. `url`
// is well-formed.
enum class PrivateTargets { refused, allowed };
boost::asio::awaitable<Result<std::string>> check_webhook_target(std::string url, PrivateTargets rule);

}  // namespace gb
