// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/caller.h"

#include <fmt/format.h>

#include "base/crypto.h"
#include "guest/agent/http_values.h"

namespace gb::agent {

Status check_token(const http::RequestHead& head, const Settings& settings) {
    if (settings.access_token.empty()) return {};
    const std::string* token = head.headers.find("X-Access-Token");
    if (token != nullptr && constant_time_equal(*token, settings.access_token)) return {};
    return fail(ErrorCode::unauthenticated,
                "unauthorized access, please provide a valid access token or method signing if supported");
}

Status check_file_access(const http::Exchange& exchange, FileOperation operation, const Settings& settings,
                         std::int64_t now_seconds) {
    if (settings.access_token.empty()) return {};
    if (exchange.head.headers.has("X-Access-Token")) return check_token(exchange.head, settings);
    const std::string path = exchange.target.get("path");
    const std::string username = exchange.target.get("username");
    return check_signature({.path = path,
                            .username = username,
                            .signature = exchange.target.find("signature"),
                            .expiration = exchange.target.find("signature_expiration")},
                           operation, settings.access_token, now_seconds);
}

Result<Caller> identify(const http::RequestHead& head, std::string_view requested, const Settings& settings,
                        UserCache& cache) {
    std::string name(requested);
    if (name.empty()) name = basic_user(head.headers.get("Authorization")).value_or("");
    if (name.empty()) name = settings.default_user;
    Caller caller{cache.get()};
    caller.user = caller.users->find(name);
    if (caller.user == nullptr)
        return fail(ErrorCode::unauthenticated, fmt::format("invalid username: '{}'", name));
    return caller;
}

}  // namespace gb::agent
