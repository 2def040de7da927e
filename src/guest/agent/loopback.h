// SPDX-License-Identifier: Apache-2.0
// A way for the host to services that listen on the guest's loopback only: GET /loopback?port=N with an upgrade to
// "tcp", then bare bytes both ways. For the control plane alone: who may use it is checked by the caller.
#pragma once

#include "http/server.h"

namespace gb::agent {

// Answers 101 and carries bytes until both directions have ended; 502 when nobody listens there, 400 when the request
// is malformed.
http::awaitable<void> connect_loopback(http::Exchange& exchange);

}  // namespace gb::agent
