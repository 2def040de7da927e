// SPDX-License-Identifier: Apache-2.0
#include "api/plan_json.h"

#include <boost/json.hpp>

namespace gb::api {

boost::json::object plan_json(const Plan& plan) {
    return {{"name", plan.name},
            {"maxSandboxes", plan.max_sandboxes},
            {"maxLifetimeSeconds", plan.max_lifetime_s},
            {"createsPerSecond", plan.creates_per_second},
            {"requestsPerSecond", plan.requests_per_second},
            {"maxCpuCount", plan.max_cpu_count},
            {"maxMemoryMB", plan.max_memory_mib},
            {"maxDiskMB", plan.max_disk_mib}};
}

}  // namespace gb::api
