// SPDX-License-Identifier: Apache-2.0
// What a restored guest is made to do before it waits for its owner. An emulated machine begins with an empty
// translation cache: its first answer takes 75 to 100 ms, later ones 1 ms; its first shell 150 to 200 ms,
// later ones 30 to 45 ms.
#pragma once

#include <stop_token>

#include "base/result.h"
#include "node/agent_client.h"
#include "node/manifest.h"

namespace gb {

// One request of each kind that a client makes first, under an identity that is thrown away, and without a
// token. A later identity takes its place whole (environment, host name, log, counters); no file, process or
// variable stays, and the Python kernel's count and history are as they were. Blocks; an error when anything
// is not answered as it should be, canceled when `over` is requested.
Status exercise_guest(const AgentClient& agent, const Manifest& manifest, const std::stop_token& over);

}  // namespace gb
