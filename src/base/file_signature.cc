// SPDX-License-Identifier: Apache-2.0
#include "base/file_signature.h"

#include <charconv>

#include "base/crypto.h"

namespace gb {

std::string sign_url(std::string_view path, FileOperation operation, std::string_view username,
                     std::string_view token, std::optional<std::int64_t> expiration) {
    std::string text(path);
    text += operation == FileOperation::read ? ":read:" : ":write:";
    text += username;
    text += ':';
    text += token;
    if (expiration) text += ":" + std::to_string(*expiration);
    std::string encoded = base64_encode(sha256(text));
    while (encoded.ends_with('=')) encoded.pop_back();
    return "v1_" + encoded;
}

namespace {

Result<std::optional<std::int64_t>> parse_expiration(const std::string* text) {
    if (text == nullptr) return std::nullopt;
    std::int64_t value = 0;
    const char* end = text->data() + text->size();
    auto [stop, ec] = std::from_chars(text->data(), end, value);
    if (ec != std::errc{} || stop != end)
        return fail(ErrorCode::invalid_argument, "signature_expiration: not a number of seconds");
    return value;
}

bool matches(const SignedQuery& query, FileOperation operation, std::string_view token,
             std::optional<std::int64_t> expiration) {
    // The signed text puts colons between its parts, and a path may hold some: with more of them in the user
    // name, what was signed for reading "a:write:b" would be right for writing "a" as "b:read:…". No user is
    // named so.
    if (query.username.find(':') != std::string_view::npos) return false;
    const std::string expected = sign_url(query.path, operation, query.username, token, expiration);
    std::string_view given = *query.signature;
    while (given.ends_with('=')) given.remove_suffix(1);
    return constant_time_equal(expected, given);
}

}  // namespace

bool made_signature(const SignedQuery& query, FileOperation operation, std::string_view token) {
    const auto expiration = parse_expiration(query.expiration);
    return query.signature != nullptr && expiration && matches(query, operation, token, *expiration);
}

Status check_signature(const SignedQuery& query, FileOperation operation, std::string_view token,
                       std::int64_t now_seconds) {
    if (query.signature == nullptr)
        return fail(ErrorCode::unauthenticated, "missing signature query parameter");
    GB_TRY_ASSIGN(const std::optional<std::int64_t> expiration, parse_expiration(query.expiration));
    if (!matches(query, operation, token, expiration))
        return fail(ErrorCode::unauthenticated, "invalid signature");
    if (expiration && *expiration < now_seconds)
        return fail(ErrorCode::unauthenticated, "signature is already expired");
    return {};
}

}  // namespace gb
