// SPDX-License-Identifier: Apache-2.0
// Metrics and log entries as the contract shows them (2.5). Pure.
#pragma once

#include <string>

#include <boost/json/object.hpp>

#include "store/records.h"

namespace gb::api {

boost::json::object metric_json(const MetricPoint& point);  // SandboxMetric
boost::json::object log_entry_json(const LogEntry& entry);  // SandboxLogEntry
// The line of a SandboxLog: a JSON document with level, logger, message and the entry's other fields.
std::string log_line(const LogEntry& entry);

}  // namespace gb::api
