// SPDX-License-Identifier: Apache-2.0
// Fields of a JSON object with their types checked. Unknown fields are no error; absent and null are the
// same.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/value.hpp>

#include "base/result.h"

namespace gb::agent {

class JsonFields {
  public:
    // An empty body is an object without fields. All errors are invalid_argument and name the field.
    static Result<JsonFields> parse(std::string_view body);

    [[nodiscard]] Result<std::optional<std::string>> text(std::string_view name) const;
    [[nodiscard]] Result<std::optional<std::vector<std::string>>> strings(std::string_view name) const;
    [[nodiscard]] Result<std::optional<std::map<std::string, std::string>>> string_map(
        std::string_view name) const;

  private:
    [[nodiscard]] const boost::json::value* find(std::string_view name) const;
    boost::json::object object_;
};

}  // namespace gb::agent
