// SPDX-License-Identifier: Apache-2.0
// The body of a request on its way through a proxy, beside which the answer is awaited.
#pragma once

#include "http/client.h"
#include "http/server.h"

namespace gb::http {

// Client to upstream, in constant memory. Ends only when the client has gone or this is cancelled, for the
// answer decides when an exchange is over; or, with true, when the client's body is malformed.
awaitable<bool> pass_body(Exchange& exchange, ClientConnection& upstream, bool has_body);

}  // namespace gb::http
