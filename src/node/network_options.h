// SPDX-License-Identifier: Apache-2.0
// What an operator says of the network of all sandboxes of a server.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "net/policy.h"
#include "net/slot.h"

namespace gb {

struct NetworkOptions {
    net::Ceiling ceiling;
    net::SlotOptions slot;  // limits of each sandbox
    std::vector<std::string>
        resolvers;  // "1.1.1.1" or "1.1.1.1:53"; none: the host's own, of /etc/resolv.conf
    std::filesystem::path
        trusted;              // PEM: whom the proxy trusts beside the system's authorities; empty: nobody
    int decisions_days = 30;  // how long the decision log of a sandbox that is gone is kept
};

}  // namespace gb
