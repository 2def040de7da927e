// SPDX-License-Identifier: Apache-2.0
// How anything of ours fails: a value with a stable code and a message that a person can act on.
// Exceptions are for broken invariants only and end the program.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace gb {

// The codes are those of the Connect protocol plus two that HTTP needs (no_space, too_large). One table in
// error_table.h turns them into HTTP statuses, Connect names and exit codes. Values never change.
enum class ErrorCode {
    canceled = 1,
    unknown = 2,
    invalid_argument = 3,
    deadline_exceeded = 4,
    not_found = 5,
    already_exists = 6,
    permission_denied = 7,
    resource_exhausted = 8,
    failed_precondition = 9,
    aborted = 10,
    out_of_range = 11,
    unimplemented = 12,
    internal = 13,
    unavailable = 14,
    data_loss = 15,
    unauthenticated = 16,
    no_space = 17,
    too_large = 18,
};

struct Error {
    ErrorCode code = ErrorCode::unknown;
    std::string message;

    Error(ErrorCode c, std::string m) : code(c), message(std::move(m)) {}

    // `what` says the operation and its object, e.g. "open /dev/net/tun". The errno decides the code: ENOENT is
    // not_found, EACCES permission_denied, ENOSPC and EDQUOT no_space, and so on; internal otherwise.
    static Error from_errno(int err, std::string_view what);

    // The same error with "<context>: " in front of its message.
    [[nodiscard]] Error with(std::string_view context) const;
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
    return std::unexpected<Error>(Error(code, std::move(message)));
}
std::unexpected<Error> fail_errno(int err, std::string_view what);
std::unexpected<Error> fail_errno(std::string_view what);  // uses errno

}  // namespace gb

#define GB_CONCAT_INNER(a, b) a##b
#define GB_CONCAT(a, b) GB_CONCAT_INNER(a, b)

// GB_TRY(expr): leave the function with the error of `expr`. GB_TRY_ASSIGN(auto x, expr): take its value.
// The GB_CO_ forms do the same inside a coroutine.
#define GB_TRY(expr)                                                           \
    do {                                                                       \
        auto gb_status = (expr);                                               \
        if (!gb_status) return std::unexpected(std::move(gb_status).error()); \
    } while (false)
#define GB_CO_TRY(expr)                                                           \
    do {                                                                          \
        auto gb_status = (expr);                                                  \
        if (!gb_status) co_return std::unexpected(std::move(gb_status).error()); \
    } while (false)
#define GB_TRY_ASSIGN_IMPL(tmp, decl, expr, ret)                 \
    auto tmp = (expr);                                           \
    if (!tmp) ret std::unexpected(std::move(tmp).error());       \
    decl = *std::move(tmp)
#define GB_TRY_ASSIGN(decl, expr) GB_TRY_ASSIGN_IMPL(GB_CONCAT(gb_result_, __LINE__), decl, expr, return)
#define GB_CO_TRY_ASSIGN(decl, expr) GB_TRY_ASSIGN_IMPL(GB_CONCAT(gb_result_, __LINE__), decl, expr, co_return)
