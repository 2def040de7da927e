// SPDX-License-Identifier: Apache-2.0
// What the answer to an upload says about one file (contract 3.6).
#pragma once

#include <string>

#include "guest/agent/http_values.h"

namespace gb::agent {

// {"path","name","type"}, and "metadata" only if there is any: clients compare for equality.
std::string write_info(const std::string& path, const Metadata& metadata);

}  // namespace gb::agent
