// SPDX-License-Identifier: Apache-2.0
// A plan as clients see it.
#pragma once

#include <boost/json/object.hpp>

#include "control/plans.h"

namespace gb::api {

boost::json::object plan_json(const Plan& plan);

}  // namespace gb::api
