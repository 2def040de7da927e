// SPDX-License-Identifier: Apache-2.0
// One connection of HTTP/2 over a stream: reads, writes and time limits around the session. Internal to this
// folder.
#pragma once

#include <memory>

#include "http/server_core.h"

namespace gb::http::detail {

// Until the connection ends; each request's handler is a coroutine of its own, which may end a little later.
awaitable<void> serve_h2(std::shared_ptr<ServerCore> core, std::shared_ptr<Stream> stream,
                         tcp::endpoint peer);

}  // namespace gb::http::detail
