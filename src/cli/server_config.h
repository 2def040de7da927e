// SPDX-License-Identifier: Apache-2.0
// The configuration file of the server, TOML. Every setting has a default; what is not known is refused, so that a
// misspelt limit is not a missing one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/plans.h"
#include "control/retention.h"
#include "node/network_options.h"
#include "node/warm_demand.h"

namespace gb::cli {

struct TlsConfig {
    std::string address = "0.0.0.0";
    std::uint16_t port = 443;
    std::filesystem::path certificate;  // PEM, the chain
    std::filesystem::path key;          // PEM
};

// How many sandboxes wait ready-made, by template. What is absent is decided elsewhere: see warm_options.
struct PoolConfig {
    struct Limits {
        std::optional<std::size_t> least, most;
    };
    Limits standard;
    std::map<std::string, Limits> templates;  // by name; what they do not say is the standard's
};

// What sandboxes may reach at most, whatever their clients say.
enum class EgressMode {
    open,    // everything that is not closed
    closed,  // nothing but what is listed
};
struct EgressConfig {
    std::optional<EgressMode> mode;
    std::vector<std::string> closed, open;  // addresses, blocks, names, *.names
    std::vector<std::string> resolvers;
    std::string trusted_ca;  // PEM file
    unsigned max_connections = 2500;
    std::uint64_t upload_mbit = 0, download_mbit = 0;  // a second, of each sandbox; 0: no limit
    int keep_decisions_days = 30;
};

struct ServerConfig {
    std::optional<std::string> address;    // of the plain port; the command line goes first
    std::optional<std::uint16_t> port;
    std::string domain;                    // sandboxes are {port}-{id}.<domain>, the control plane api.<domain>
    std::optional<TlsConfig> tls;
    Plans plans;
    Prices prices;
    PoolConfig pool;
    EgressConfig egress;
    bool prepare_on_demand = true;         // of templates that somebody wants and that are only defined
    int retention_days = 7;                // of events, metrics and logs
    Retention retention;                   // of what is not running
    bool webhooks_to_private = false;      // whether webhooks may go to private addresses
};

// `name` is what errors call the text.
Result<ServerConfig> parse_server_config(std::string_view text, std::string_view name);

// The same with every number said: `most` is the command line's where the file says nothing, and else 4; `least` is 0.
// invalid_argument where the least is above the most, unless the most is 0, which means no pool at all.
Result<WarmOptions> warm_options(const PoolConfig& config, std::optional<std::size_t> most);

// What the node is told. The command line's mode goes before the file's; the lists stay the file's.
// invalid_argument where a list of what is open has no effect because nobody said "closed".
Result<NetworkOptions> network_options(const EgressConfig& config, std::optional<EgressMode> command_line);

// An empty path: /etc/glovebox/config.toml if there is one, else the defaults. A path that is given must exist.
Result<ServerConfig> load_server_config(const std::filesystem::path& path);

}  // namespace gb::cli
