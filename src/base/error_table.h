// SPDX-License-Identifier: Apache-2.0
// The one table from error codes to what each front door says: HTTP status, Connect name, exit code.
#pragma once

#include <string_view>

#include "base/result.h"

namespace gb {

struct ErrorRow {
    ErrorCode code;
    std::string_view connect_name;  // Connect protocol, "Error codes"
    int http_status;                // control plane and Connect unary answers
    int exit_code;                  // of the command line
};

const ErrorRow& error_row(ErrorCode code);
inline int http_status(ErrorCode code) {
    return error_row(code).http_status;
}
inline std::string_view connect_name(ErrorCode code) {
    return error_row(code).connect_name;
}
inline int exit_code(ErrorCode code) {
    return error_row(code).exit_code;
}
// The code that best describes an HTTP status of another program; internal when none fits.
ErrorCode code_from_http(int status);

}  // namespace gb
