// SPDX-License-Identifier: Apache-2.0
// The network of a sandbox for people and programs to read: what is in force, or what will be. Pure.
#pragma once

#include <boost/json/object.hpp>

#include "node/node.h"
#include "store/records.h"

namespace gb::api {

boost::json::object effective_network_json(const EffectiveNetwork& network);
// Of a sandbox that is not running: as its client asked; what a machine makes of it is not known.
boost::json::object recorded_network_json(const SandboxRecord& record);

}  // namespace gb::api
