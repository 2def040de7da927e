#include "api/create_request.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include "api/fields.h"

namespace gb::api {
namespace json = boost::json;
namespace {

std::unexpected<Error> not_yet(std::string_view field) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("field '{}' asks for something that this server does not support yet", field));
}

Status parse_network(const json::object& body, CreateSandbox& out) {
    Fields fields(body);
    GB_TRY_ASSIGN(out.network.allow_internet_access, fields.boolean("allow_internet_access"));
    GB_TRY_ASSIGN(const json::object* network, fields.object("network"));
    if (network == nullptr) return {};
    Fields inner(*network, "network.");
    GB_TRY_ASSIGN(out.network.allow_out, inner.texts("allowOut"));
    GB_TRY_ASSIGN(out.network.deny_out, inner.texts("denyOut"));
    GB_TRY_ASSIGN(auto public_traffic, inner.boolean("allowPublicTraffic"));
    if (public_traffic && !*public_traffic) return not_yet("network.allowPublicTraffic");
    GB_TRY_ASSIGN(const json::object* rules, inner.object("rules"));
    if (rules != nullptr && !rules->empty()) return not_yet("network.rules");
    GB_TRY_ASSIGN(auto mask, inner.text("maskRequestHost"));
    if (mask && !mask->empty()) return not_yet("network.maskRequestHost");
    if (inner.has("egressProxy")) return not_yet("network.egressProxy");
    if (inner.has("httpsPorts")) return not_yet("network.httpsPorts");
    out.network_json = json::serialize(*network);
    return {};
}

}  // namespace

Result<CreateSandbox> parse_create(std::string_view text, Generation generation) {
    GB_TRY_ASSIGN(json::object body, parse_object(text, false));
    Fields fields(body);
    CreateSandbox out;
    GB_TRY_ASSIGN(out.template_ref, fields.required_text("templateID"));
    GB_TRY_ASSIGN(auto timeout, fields.integer("timeout"));
    out.timeout_s = static_cast<int>(timeout.value_or(generation == Generation::v1 ? 15 : 300));
    GB_TRY_ASSIGN(auto secure, fields.boolean("secure"));
    out.secure = generation == Generation::v2 || secure.value_or(false);
    GB_TRY_ASSIGN(out.metadata, fields.text_map("metadata"));
    GB_TRY_ASSIGN(out.env_vars, fields.text_map("envVars"));
    for (const auto& [name, value] : out.env_vars)
        if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos ||
            value.find('\0') != std::string::npos)
            return fail(ErrorCode::invalid_argument,
                        fmt::format("validation error: field 'envVars': '{}' cannot be an environment variable", name));
    GB_TRY_ASSIGN(auto auto_pause, fields.boolean("autoPause"));
    if (auto_pause.value_or(false)) return not_yet("autoPause");
    GB_TRY_ASSIGN(const json::object* auto_resume, fields.object("autoResume"));
    if (auto_resume != nullptr) {
        GB_TRY_ASSIGN(auto enabled, Fields(*auto_resume, "autoResume.").boolean("enabled"));
        if (enabled.value_or(false)) return not_yet("autoResume");
    }
    if (const json::value* mounts = body.if_contains("volumeMounts");
        mounts != nullptr && !mounts->is_null() && !(mounts->is_array() && mounts->get_array().empty()))
        return not_yet("volumeMounts");
    GB_TRY_ASSIGN(auto keep_memory, fields.boolean("autoPauseMemory"));
    if (!keep_memory.value_or(true)) return not_yet("autoPauseMemory");
    if (fields.has("iam")) return not_yet("iam");
    GB_TRY(parse_network(body, out));
    return out;
}

}  // namespace gb::api
