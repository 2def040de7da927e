// SPDX-License-Identifier: Apache-2.0
// Who makes a request (contract 3.2): whether they may, and as which user of the sandbox.
#pragma once

#include <memory>
#include <string_view>

#include "base/file_signature.h"
#include "base/result.h"
#include "guest/agent/settings.h"
#include "guest/agent/users.h"
#include "http/server.h"

namespace gb::agent {

// The request's X-Access-Token against the sandbox's. Everything is allowed while there is none.
Status check_token(const http::RequestHead& head, const Settings& settings);

// For GET and POST /files: the token, or without one a signature over the query.
Status check_file_access(const http::Exchange& exchange, FileOperation operation, const Settings& settings,
                         std::int64_t now_seconds);

struct Caller {
    std::shared_ptr<const UserTable> users;
    const User* user = nullptr;  // in `users`
};

// `requested` if it is not empty, else the user of the Basic header, else the default user. unauthenticated:
// "invalid username: '<x>'".
Result<Caller> identify(const http::RequestHead& head, std::string_view requested, const Settings& settings,
                        UserCache& cache);

}  // namespace gb::agent
