// SPDX-License-Identifier: Apache-2.0
// The network of a sandbox between a client's request and its row. Pure.
#pragma once

#include <string>

#include "base/result.h"
#include "base/seal.h"
#include "net/network_request.h"
#include "store/records.h"

namespace gb {

// A replacement of everything that a sandbox's network says of the way out.
struct NetworkUpdate {
    net::NetworkRequest network;
    std::string egress_json;  // an object of the fields as the client wrote them, without any password
};

// Puts a request into a row, the proxy's password sealed for this sandbox. `sealer` may be null: then a
// password is failed_precondition. On an error the row is as it was.
Status put_network(SandboxRecord& record, const net::NetworkRequest& network, const Sealer* sealer);
// And back. failed_precondition when the password cannot be read.
Result<net::NetworkRequest> network_of(const SandboxRecord& record, const Sealer* sealer);
// What put_network() sets, from one row to another of the same sandbox.
void copy_network(const SandboxRecord& from, SandboxRecord& to);

// "network" of the create request with other fields for the way out; those for the way in stay. Empty when
// nothing is left.
std::string with_egress(const std::string& network_json, const std::string& egress_json);

}  // namespace gb
