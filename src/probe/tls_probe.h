// SPDX-License-Identifier: Apache-2.0
// A TLS handshake that believes everybody: it asks whether a way is open, not who is at its end.
#pragma once

#include <string>

#include "probe/sockets.h"

namespace gb::probe {

// On a connected, non-blocking socket; `name` is sent as SNI unless it is empty. Whose certificate came.
Result<std::string> shake_hands(int fd, const std::string& name, Patience patience);

}  // namespace gb::probe
