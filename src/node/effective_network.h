// SPDX-License-Identifier: Apache-2.0
// The network of a sandbox as it is in force, put together from its policy and the operator's word. Pure.
#pragma once

#include "node/network_options.h"
#include "node/node.h"

namespace gb {

// `ceiling`: the operator's with what this host adds to it.
EffectiveNetwork effective_network(const net::EgressPolicy& policy, const net::Ceiling& ceiling,
                                   const NetworkOptions& options);

}  // namespace gb
