// The configuration file of the server, TOML. Every setting has a default; what is not known is refused, so that a
// misspelt limit is not a missing one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/plans.h"
#include "control/retention.h"

namespace gb::cli {

struct TlsConfig {
    std::string address = "0.0.0.0";
    std::uint16_t port = 443;
    std::filesystem::path certificate;  // PEM, the chain
    std::filesystem::path key;          // PEM
};

struct ServerConfig {
    std::optional<std::string> address;    // of the plain port; the command line goes first
    std::optional<std::uint16_t> port;
    std::string domain;                    // sandboxes are {port}-{id}.<domain>, the control plane api.<domain>
    std::optional<TlsConfig> tls;
    Plans plans;
    Prices prices;
    int retention_days = 7;                // of events, metrics and logs
    Retention retention;                   // of what is not running
    bool webhooks_to_private = false;      // whether webhooks may go to private addresses
};

// `name` is what errors call the text.
Result<ServerConfig> parse_server_config(std::string_view text, std::string_view name);

// An empty path: /etc/glovebox/config.toml if there is one, else the defaults. A path that is given must exist.
Result<ServerConfig> load_server_config(const std::filesystem::path& path);

}  // namespace gb::cli
