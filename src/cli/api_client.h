// SPDX-License-Identifier: Apache-2.0
// Asks a running server, as any other client would. Blocking.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <boost/asio/ip/tcp.hpp>
#include <boost/json/value.hpp>

#include "base/result.h"
#include "node/machinery.h"

namespace gb::cli {

struct ServerAddress {
    std::string url;          // http://host:port
    std::string key;          // of a team
    std::string admin_token;  // the operator's; when it is there, it is sent instead of the key
};

// The server of the data folder. not_found says how to start one.
Result<ServerAddress> find_local_server(const NodeOptions& options);
// The one that E2B_API_URL and E2B_API_KEY name, unless a data folder was given; else the local one.
Result<ServerAddress> find_server(const NodeOptions& options, bool data_dir_given);

// The server of the data folder, for its operator: who may read the admin token there.
Result<ServerAddress> find_operator_server(const NodeOptions& options);

// Where its plain port is.
struct ServerPlace {
    boost::asio::ip::tcp::endpoint endpoint;
    std::string host;          // the Host of requests to the control plane,
    std::string sandbox_host;  // and of those that name a sandbox by their headers
};
Result<ServerPlace> resolve_server(const std::string& url);

// What an answer that is no success says, for people.
std::string message_of_answer(int status, std::string_view body);

// The path of the page that follows one whose answer had this X-Next-Token.
std::string page_after(const std::string& path, std::string_view token);

// The body of the answer as it came.
Result<std::string> call_api_text(const ServerAddress& server, const std::string& method,
                                  const std::string& path, const std::string& body = "");
// The JSON answer; null when it has no body. A list that comes in pages is read to its end. The server's own error
// message on failure.
Result<boost::json::value> call_api(const ServerAddress& server, const std::string& method,
                                    const std::string& path, const std::string& body = "");

// A GET whose answer comes in lines, each given without its end as soon as it is there. Returns when the
// answer is complete; unavailable when it was cut.
Status stream_api(const ServerAddress& server, const std::string& path,
                  const std::function<void(std::string_view line)>& on_line);

}  // namespace gb::cli
