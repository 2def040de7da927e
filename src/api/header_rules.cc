// SPDX-License-Identifier: Apache-2.0
#include "api/header_rules.h"

#include <fmt/format.h>

#include "egress/header_rules.h"

namespace gb::api {

Status check_header_rules(const net::NetworkRequest& request) {
    for (const auto& [host, headers] : request.rules)
        if (Status good = egress::check_rules(headers); !good)
            return fail(ErrorCode::invalid_argument,
                        fmt::format("validation error: rules for '{}': {}", host, good.error().message));
    return {};
}

std::vector<std::string> secret_names(const net::NetworkRequest& request) {
    std::vector<net::HeaderRule> all;
    for (const auto& [host, headers] : request.rules) all.insert(all.end(), headers.begin(), headers.end());
    return egress::secret_names(all);
}

}  // namespace gb::api
