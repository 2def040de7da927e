// SPDX-License-Identifier: Apache-2.0
#include "cli/destinations.h"

#include <fmt/format.h>

namespace gb::cli {

Status split_destinations(const std::vector<std::string>& list, std::string_view name,
                          std::vector<net::Cidr>& blocks, std::vector<net::NamePattern>& names) {
    for (const std::string& entry : list) {
        if (auto cidr = net::parse_cidr(entry)) {
            if (const auto* v4 = std::get_if<net::Cidr>(&*cidr)) blocks.push_back(*v4);
            continue;
        }
        auto pattern = net::parse_pattern(entry);
        if (!pattern)
            return fail(
                ErrorCode::invalid_argument,
                fmt::format("'{}' holds '{}', which is no address, no block, no name and no *.name: {}", name,
                            entry, pattern.error().message));
        names.push_back(*std::move(pattern));
    }
    return {};
}

}  // namespace gb::cli
