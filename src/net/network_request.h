// SPDX-License-Identifier: Apache-2.0
// What a client asks of a sandbox's network, as it wrote it. Plain values: control stores them, the node
// makes a policy of them (policy.h) or refuses them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gb::net {

// A header that is set on every request to a host, in place of what the program sent. The value may name
// secrets of the team, ${e2b.secrets.<name>}: their contents are put in on the host, at the time of the
// request.
struct HeaderRule {
    std::string name, value;
    bool operator==(const HeaderRule&) const = default;
};

// The client's own SOCKS5 proxy (RFC 1928, 1929), through which all TCP of the sandbox goes.
struct ProxyRequest {
    std::string address;             // "host:port"
    std::string username, password;  // empty username: no authentication
    bool operator==(const ProxyRequest&) const = default;
};

struct NetworkRequest {
    std::optional<bool> allow_internet_access;  // false is deny_out 0.0.0.0/0; true changes nothing
    std::vector<std::string> allow_out;         // addresses, blocks, names, *.names
    std::vector<std::string> deny_out;          // addresses and blocks
    std::map<std::string, std::vector<HeaderRule>> rules;  // by host, or *.host
    std::optional<ProxyRequest> egress_proxy;
    bool operator==(const NetworkRequest&) const = default;
};

}  // namespace gb::net
