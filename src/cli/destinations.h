// SPDX-License-Identifier: Apache-2.0
// Lists of destinations as an operator writes them: addresses, blocks, names and *.names. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/cidr.h"
#include "net/host_name.h"

namespace gb::cli {

// IPv6 blocks are good and have no effect: sandboxes have no IPv6. `name` is the list's, for the error.
Status split_destinations(const std::vector<std::string>& list, std::string_view name,
                          std::vector<net::Cidr>& blocks, std::vector<net::NamePattern>& names);

}  // namespace gb::cli
