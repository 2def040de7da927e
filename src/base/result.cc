// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace gb {
namespace {

ErrorCode code_of(int err) {
    switch (err) {
        case ENOENT:
        case ESRCH:
        case ENXIO:
            return ErrorCode::not_found;
        case EACCES:
        case EPERM:
        case EROFS:
            return ErrorCode::permission_denied;
        case EEXIST:
            return ErrorCode::already_exists;
        case ENOSPC:
        case EDQUOT:
            return ErrorCode::no_space;
        case ENOMEM:
        case EMFILE:
        case ENFILE:
        case EAGAIN:
            return ErrorCode::resource_exhausted;
        case EINVAL:
        case ENOTDIR:
        case EISDIR:
        case ENAMETOOLONG:
        case ELOOP:
            return ErrorCode::invalid_argument;
        case ETIMEDOUT:
            return ErrorCode::deadline_exceeded;
        case ECONNREFUSED:
        case ECONNRESET:
        case EPIPE:
        case EHOSTUNREACH:
        case ENETUNREACH:
            return ErrorCode::unavailable;
        default:
            return ErrorCode::internal;
    }
}

}  // namespace

Error Error::from_errno(int err, std::string_view what) {
    return {code_of(err), fmt::format("{}: {}", what, ::strerrordesc_np(err) ? ::strerrordesc_np(err) : "unknown error")};
}

Error Error::with(std::string_view context) const {
    return {code, fmt::format("{}: {}", context, message)};
}

std::unexpected<Error> fail_errno(int err, std::string_view what) {
    return std::unexpected<Error>(Error::from_errno(err, what));
}

std::unexpected<Error> fail_errno(std::string_view what) {
    return fail_errno(errno, what);
}

}  // namespace gb
