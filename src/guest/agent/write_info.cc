// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/write_info.h"

#include <fmt/format.h>

#include "base/log.h"
#include "guest/agent/paths.h"

namespace gb::agent {

std::string write_info(const std::string& path, const Metadata& metadata) {
    std::string out = fmt::format(R"({{"path":{},"name":{},"type":"file")", log::json_quote(path),
                                  log::json_quote(base_name(path)));
    if (!metadata.empty()) {
        std::string object;
        for (const auto& [key, value] : metadata)
            object += fmt::format("{}{}:{}", object.empty() ? "" : ",", log::json_quote(key),
                                  log::json_quote(value));
        out += ",\"metadata\":{" + object + "}";
    }
    return out + "}";
}

}  // namespace gb::agent
