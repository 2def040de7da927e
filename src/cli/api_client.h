// Asks a running server, as any other client would. Blocking.
#pragma once

#include <string>

#include <boost/json/value.hpp>

#include "base/result.h"
#include "node/machinery.h"

namespace gb::cli {

struct ServerAddress {
    std::string url;  // http://host:port
    std::string key;
};

// E2B_API_URL and E2B_API_KEY if set, else what the server of the data folder left there. not_found says how to start
// one.
Result<ServerAddress> find_server(const NodeOptions& options);

// The JSON answer; null when it has no body. The server's own error message on failure.
Result<boost::json::value> call_api(const ServerAddress& server, const std::string& method, const std::string& path,
                                    const std::string& body = "");

}  // namespace gb::cli
