// SPDX-License-Identifier: Apache-2.0
// Reads the members of a JSON request body. Unknown members are ignored; a member of the wrong type is an
// invalid_argument that names it. `null` counts as absent.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "base/result.h"

namespace gb::api {

// The body as an object; an empty body is an empty object when `may_be_empty`.
Result<boost::json::object> parse_object(std::string_view body, bool may_be_empty);

class Fields {
  public:
    explicit Fields(const boost::json::object& object, std::string prefix = "")
        : object_(object), prefix_(std::move(prefix)) {}

    [[nodiscard]] Result<std::optional<std::string>> text(std::string_view name) const;
    [[nodiscard]] Result<std::string> required_text(std::string_view name) const;  // absent or empty: an error
    [[nodiscard]] Result<std::optional<bool>> boolean(std::string_view name) const;
    [[nodiscard]] Result<std::optional<std::int64_t>> integer(std::string_view name) const;  // 3.0 counts as 3
    [[nodiscard]] Result<std::vector<std::string>> texts(std::string_view name) const;       // absent: empty
    [[nodiscard]] Result<std::map<std::string, std::string>> text_map(std::string_view name) const;
    [[nodiscard]] Result<const boost::json::object*> object(std::string_view name) const;    // absent: null
    [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }

  private:
    [[nodiscard]] const boost::json::value* find(std::string_view name) const;
    [[nodiscard]] std::unexpected<Error> wrong(std::string_view name, std::string_view wanted) const;

    const boost::json::object& object_;
    std::string prefix_;  // "network." for the members of an inner object
};

}  // namespace gb::api
