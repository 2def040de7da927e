// SPDX-License-Identifier: Apache-2.0
// What a client may ask to be set in the requests of its sandbox (contract 7.6). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/network_request.h"

namespace gb::api {

// egress::check_rules for every host. invalid_argument names the host and the header; no text repeats a value.
Status check_header_rules(const net::NetworkRequest& request);

// The secrets that checked rules name, each once, sorted.
std::vector<std::string> secret_names(const net::NetworkRequest& request);

}  // namespace gb::api
