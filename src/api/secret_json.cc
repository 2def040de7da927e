// SPDX-License-Identifier: Apache-2.0
#include "api/secret_json.h"

#include <boost/json.hpp>

#include "api/fields.h"
#include "base/clock.h"

namespace gb::api {
namespace json = boost::json;

Result<SecretBody> parse_secret(std::string_view body, SecretRequest kind) {
    GB_TRY_ASSIGN(const json::object object, parse_object(body, false));
    Fields fields(object);
    SecretBody out;
    if (kind == SecretRequest::create) {
        GB_TRY_ASSIGN(out.name, fields.required_text("name"));
    }
    GB_TRY_ASSIGN(out.value, fields.required_text("value"));
    if (fields.has("metadata")) {
        GB_TRY_ASSIGN(out.metadata, fields.text_map("metadata"));
    }
    return out;
}

json::object secret_json(const SecretRecord& secret) {
    json::object metadata;
    for (const auto& [key, value] : secret.metadata) metadata[key] = value;
    return {{"secretID", secret.id},
            {"name", secret.name},
            {"currentVersion", secret.version},
            {"metadata", std::move(metadata)},
            {"createdAt", rfc3339(secret.created_ms)},
            {"updatedAt", rfc3339(secret.updated_ms)}};
}

}  // namespace gb::api
