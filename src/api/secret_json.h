// SPDX-License-Identifier: Apache-2.0
// Secrets as requests and answers have them (contract 2.5 NewSecret, SecretUpdate, Secret). Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "store/records.h"

namespace gb::api {

struct SecretBody {
    std::string name;  // of a new one only
    std::string value;
    std::optional<std::map<std::string, std::string>> metadata;
};
enum class SecretRequest { create, update };
// invalid_argument; no text repeats the value.
Result<SecretBody> parse_secret(std::string_view body, SecretRequest kind);

boost::json::object secret_json(const SecretRecord& secret);  // never its value, in no form

}  // namespace gb::api
