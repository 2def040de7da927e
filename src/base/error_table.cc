// SPDX-License-Identifier: Apache-2.0
#include "base/error_table.h"

#include <array>

namespace gb {
namespace {

constexpr std::array<ErrorRow, 18> kErrorTable{{
    {ErrorCode::canceled, "canceled", 499, 1},
    {ErrorCode::unknown, "unknown", 500, 1},
    {ErrorCode::invalid_argument, "invalid_argument", 400, 2},
    {ErrorCode::deadline_exceeded, "deadline_exceeded", 504, 4},
    {ErrorCode::not_found, "not_found", 404, 3},
    {ErrorCode::already_exists, "already_exists", 409, 1},
    {ErrorCode::permission_denied, "permission_denied", 403, 5},
    {ErrorCode::resource_exhausted, "resource_exhausted", 429, 6},
    {ErrorCode::failed_precondition, "failed_precondition", 409, 1},
    {ErrorCode::aborted, "aborted", 409, 1},
    {ErrorCode::out_of_range, "out_of_range", 400, 2},
    {ErrorCode::unimplemented, "unimplemented", 501, 1},
    {ErrorCode::internal, "internal", 500, 1},
    {ErrorCode::unavailable, "unavailable", 503, 7},
    {ErrorCode::data_loss, "data_loss", 500, 1},
    {ErrorCode::unauthenticated, "unauthenticated", 401, 5},
    {ErrorCode::no_space, "resource_exhausted", 507, 6},
    {ErrorCode::too_large, "invalid_argument", 413, 2},
}};

}  // namespace

const ErrorRow& error_row(ErrorCode code) {
    return kErrorTable[static_cast<std::size_t>(code) - 1];
}

ErrorCode code_from_http(int status) {
    if (status == 502) return ErrorCode::unavailable;
    for (const ErrorRow& row : kErrorTable)
        if (row.http_status == status) return row.code;
    return ErrorCode::internal;
}

}  // namespace gb
