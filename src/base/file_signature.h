// SPDX-License-Identifier: Apache-2.0
// Signed file URLs (contract 3.6): usable without the access token, for one path, one direction and a limited
// time. Pure; the caller brings the clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gb {

enum class FileOperation { read, write };

// "v1_" and the unpadded base64 of SHA-256 over path:operation:username:token[:expiration].
// `path` and `username` are exactly those of the query, "" where the query has none.
std::string sign_url(std::string_view path, FileOperation operation, std::string_view username,
                     std::string_view token, std::optional<std::int64_t> expiration);

struct SignedQuery {
    std::string_view path;
    std::string_view username;
    const std::string* signature = nullptr;   // null: the query has none
    const std::string* expiration = nullptr;  // unix seconds as text
};

// Whether this token made the signature, expired or not.
bool made_signature(const SignedQuery& query, FileOperation operation, std::string_view token);

// unauthenticated with the contract's texts, invalid_argument for an expiration that is no number.
Status check_signature(const SignedQuery& query, FileOperation operation, std::string_view token,
                       std::int64_t now_seconds);

}  // namespace gb
