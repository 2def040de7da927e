// SPDX-License-Identifier: Apache-2.0
#include "api/create_request.h"

#include <algorithm>

#include <boost/asio/ip/address_v6.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include "api/fields.h"
#include "api/network_request.h"

namespace gb::api {
namespace json = boost::json;
namespace {

std::unexpected<Error> not_yet(std::string_view field) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("field '{}' asks for something that this server does not support yet", field));
}

// What may stand in a Host header: letters, digits, '-', '.', an IPv6 address in brackets, a port.
bool is_host_pattern(std::string_view pattern) {
    std::string host(pattern);
    if (std::size_t at = host.find("${PORT}"); at != std::string::npos) host.replace(at, 7, "65535");
    if (host.size() > 255) return false;
    std::string_view port;
    if (std::size_t colon = host.rfind(':'); colon != std::string::npos && host.find(']', colon) == std::string::npos) {
        port = std::string_view(host).substr(colon + 1);
        if (port.empty() || port.size() > 5 || !std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; }))
            return false;
    }
    std::string_view name = std::string_view(host).substr(0, port.empty() ? host.size() : host.size() - port.size() - 1);
    if (name.starts_with('[')) {
        boost::system::error_code ec;
        if (!name.ends_with(']')) return false;
        boost::asio::ip::make_address_v6(std::string(name.substr(1, name.size() - 2)), ec);
        return !ec;
    }
    return !name.empty() && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    });
}

Status parse_lifecycle(const json::object& body, CreateSandbox& out) {
    Fields fields(body);
    GB_TRY_ASSIGN(auto auto_pause, fields.boolean("autoPause"));
    GB_TRY_ASSIGN(auto keep_memory, fields.boolean("autoPauseMemory"));
    out.auto_pause = auto_pause.value_or(false);
    out.auto_pause_memory = keep_memory.value_or(true);
    GB_TRY_ASSIGN(const json::object* auto_resume, fields.object("autoResume"));
    if (auto_resume != nullptr) {
        GB_TRY_ASSIGN(auto enabled, Fields(*auto_resume, "autoResume.").boolean("enabled"));
        out.auto_resume = enabled.value_or(false);
    }
    if (out.auto_pause_memory) return {};
    if (!out.auto_pause)
        return fail(ErrorCode::invalid_argument, "validation error: field 'autoPauseMemory' needs 'autoPause'");
    if (out.auto_resume)
        return fail(ErrorCode::invalid_argument,
                    "validation error: a sandbox without saved memory cannot resume by itself: 'autoPauseMemory' false "
                    "and 'autoResume' exclude each other");
    return {};
}

Status parse_network(const json::object& body, CreateSandbox& out) {
    Fields fields(body);
    GB_TRY_ASSIGN(out.network.allow_internet_access, fields.boolean("allow_internet_access"));
    GB_TRY_ASSIGN(const json::object* network, fields.object("network"));
    if (network == nullptr) return {};
    Fields inner(*network, "network.");
    GB_TRY_ASSIGN(auto public_traffic, inner.boolean("allowPublicTraffic"));
    out.public_traffic = public_traffic.value_or(true);
    GB_TRY_ASSIGN(auto mask, inner.text("maskRequestHost"));
    out.mask_request_host = mask.value_or("");
    if (!out.mask_request_host.empty() && !is_host_pattern(out.mask_request_host))
        return fail(ErrorCode::invalid_argument,
                    "validation error: field 'network.maskRequestHost' must be a host name or address with an optional "
                    "port, where ${PORT} stands for the port that is asked for");
    GB_TRY(parse_egress(*network, "network.", out.network));
    if (inner.has("httpsPorts")) return not_yet("network.httpsPorts");
    // Ours are only the fields that are known; others are the client's and go back to it.
    json::object shown = *network;
    if (json::value* proxy = shown.if_contains("egressProxy"); proxy != nullptr && proxy->is_object())
        proxy->get_object().stable_erase("password");
    out.network_json = json::serialize(shown);
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
    GB_TRY(parse_lifecycle(body, out));
    if (const json::value* mounts = body.if_contains("volumeMounts");
        mounts != nullptr && !mounts->is_null() && !(mounts->is_array() && mounts->get_array().empty()))
        return not_yet("volumeMounts");
    if (fields.has("iam")) return not_yet("iam");
    GB_TRY(parse_network(body, out));
    if (!out.public_traffic && !out.secure)
        return fail(ErrorCode::invalid_argument,
                    "validation error: 'network.allowPublicTraffic' false needs a secured sandbox ('secure' true)");
    return out;
}

}  // namespace gb::api
