// SPDX-License-Identifier: Apache-2.0
// What was used and what it costs, as our own routes answer it. Pure.
#pragma once

#include <span>

#include <boost/json/object.hpp>

#include "api/parameters.h"
#include "control/metering.h"

namespace gb::api {

// Dollars are strings, so that no client rounds them.
boost::json::object usage_json(std::span<const SandboxUsageRow> rows, const TimeWindow& window, const Prices& prices);

}  // namespace gb::api
