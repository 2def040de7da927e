#include "guest/agent/signature.h"

#include <charconv>

#include "base/crypto.h"

namespace gb::agent {

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

Status check_signature(const SignedQuery& query, FileOperation operation, std::string_view token,
                       std::int64_t now_seconds) {
    if (query.signature == nullptr)
        return fail(ErrorCode::unauthenticated, "missing signature query parameter");
    std::optional<std::int64_t> expiration;
    if (query.expiration != nullptr) {
        std::int64_t value = 0;
        const char* end = query.expiration->data() + query.expiration->size();
        auto [stop, ec] = std::from_chars(query.expiration->data(), end, value);
        if (ec != std::errc{} || stop != end)
            return fail(ErrorCode::invalid_argument, "signature_expiration: not a number of seconds");
        expiration = value;
    }
    // The signed text puts colons between its parts, and a path may hold some: with more of them in the user name,
    // what was signed for reading "a:write:b" would be right for writing "a" as "b:read:…". No user is named so.
    if (query.username.find(':') != std::string_view::npos)
        return fail(ErrorCode::unauthenticated, "invalid signature");
    const std::string expected = sign_url(query.path, operation, query.username, token, expiration);
    std::string_view given = *query.signature;
    while (given.ends_with('=')) given.remove_suffix(1);
    if (!constant_time_equal(expected, given)) return fail(ErrorCode::unauthenticated, "invalid signature");
    if (expiration && *expiration < now_seconds)
        return fail(ErrorCode::unauthenticated, "signature is already expired");
    return {};
}

}  // namespace gb::agent
