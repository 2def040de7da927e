// SPDX-License-Identifier: Apache-2.0
#include "base/error_body.h"

#include <fmt/format.h>

#include "base/log.h"

namespace gb {

std::string error_body(int status, std::string_view message) {
    return fmt::format(R"({{"code":{},"message":{}}})", status, log::json_quote(message));
}

}  // namespace gb
