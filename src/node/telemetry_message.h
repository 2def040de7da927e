// SPDX-License-Identifier: Apache-2.0
// Reads what an agent answers to GET /telemetry. The guest may be hostile: everything has limits, and an
// answer that is not exactly what our agent would say is refused as a whole. Pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "node/node.h"

namespace gb {

inline constexpr std::size_t kMaxTelemetryBytes = std::size_t{512} << 10;  // of one answer

// `after` is what the agent was asked for. internal: not an answer of our agent.
Result<Telemetry> parse_telemetry(std::string_view body, std::uint64_t after);

}  // namespace gb
