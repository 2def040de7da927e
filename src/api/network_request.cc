// SPDX-License-Identifier: Apache-2.0
#include "api/network_request.h"

#include <array>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "api/fields.h"
#include "api/header_rules.h"
#include "net/policy.h"

namespace gb::api {
namespace json = boost::json;
namespace {

constexpr std::array<const char*, 4> kEgress{"allowOut", "denyOut", "rules", "egressProxy"};

std::unexpected<Error> wrong_rule(const std::string& name, std::string_view wanted) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("validation error: field '{}' must be {}", name, wanted));
}

std::unexpected<Error> not_yet(const std::string& field) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("field '{}' asks for something that this server does not support yet", field));
}

// One entry of a host: {"transform": {"headers": {name: value}}}.
Status parse_rule(const json::value& rule, const std::string& name, std::vector<net::HeaderRule>& out) {
    if (!rule.is_object()) return wrong_rule(name, "an object");
    for (const auto& member : rule.get_object())
        if (member.key() != "transform" && !member.value().is_null())
            return not_yet(fmt::format("{}.{}", name, std::string_view(member.key())));
    GB_TRY_ASSIGN(const json::object* transform, Fields(rule.get_object(), name + ".").object("transform"));
    if (transform == nullptr) return {};
    const std::string inner = name + ".transform";
    for (const auto& member : *transform)
        if (member.key() != "headers" && !member.value().is_null())
            return not_yet(fmt::format("{}.{}", inner, std::string_view(member.key())));
    GB_TRY_ASSIGN(const json::object* headers, Fields(*transform, inner + ".").object("headers"));
    if (headers == nullptr) return {};
    for (const auto& header : *headers) {
        if (!header.value().is_string())
            return wrong_rule(fmt::format("{}.headers.{}", inner, std::string_view(header.key())), "a string");
        out.push_back({std::string(header.key()), std::string(header.value().get_string())});
    }
    return {};
}

Status parse_rules(const json::object& rules, const std::string& name, net::NetworkRequest& out) {
    for (const auto& host : rules) {
        const std::string host_name = fmt::format("{}.{}", name, std::string_view(host.key()));
        if (!host.value().is_array()) return wrong_rule(host_name, "a list");
        std::vector<net::HeaderRule>& headers = out.rules[std::string(host.key())];
        for (const json::value& rule : host.value().get_array()) GB_TRY(parse_rule(rule, host_name, headers));
    }
    return {};
}

Status parse_proxy(const json::object& proxy, const std::string& name, net::NetworkRequest& out) {
    for (const auto& member : proxy)
        if (member.key() != "address" && member.key() != "username" && member.key() != "password" &&
            !member.value().is_null())
            return not_yet(fmt::format("{}.{}", name, std::string_view(member.key())));
    Fields fields(proxy, name + ".");
    net::ProxyRequest request;
    GB_TRY_ASSIGN(request.address, fields.required_text("address"));
    GB_TRY_ASSIGN(auto username, fields.text("username"));
    GB_TRY_ASSIGN(auto password, fields.text("password"));
    request.username = username.value_or("");
    request.password = password.value_or("");
    out.egress_proxy = std::move(request);
    return {};
}

}  // namespace

Status parse_egress(const json::object& object, const std::string& prefix, net::NetworkRequest& out) {
    Fields fields(object, prefix);
    GB_TRY_ASSIGN(out.allow_out, fields.texts("allowOut"));
    GB_TRY_ASSIGN(out.deny_out, fields.texts("denyOut"));
    GB_TRY_ASSIGN(const json::object* rules, fields.object("rules"));
    if (rules != nullptr) GB_TRY(parse_rules(*rules, prefix + "rules", out));
    GB_TRY_ASSIGN(const json::object* proxy, fields.object("egressProxy"));
    if (proxy != nullptr) GB_TRY(parse_proxy(*proxy, prefix + "egressProxy", out));
    if (fields.has("dnsServers")) return not_yet(prefix + "dnsServers");
    GB_TRY(check_header_rules(out));
    GB_TRY(net::parse_policy(out));
    std::erase_if(out.rules, [](const auto& host) { return host.second.empty(); });  // they ask for nothing
    return {};
}

json::object shown_egress(const json::object& object) {
    json::object out;
    for (const char* field : kEgress) {
        const json::value* value = object.if_contains(field);
        if (value == nullptr || value->is_null()) continue;
        out[field] = *value;
    }
    if (json::value* proxy = out.if_contains("egressProxy"); proxy != nullptr && proxy->is_object())
        proxy->get_object().stable_erase("password");
    return out;
}

Result<NetworkUpdate> parse_network_update(std::string_view body) {
    GB_TRY_ASSIGN(const json::object object, parse_object(body, true));
    NetworkUpdate out;
    GB_TRY_ASSIGN(out.network.allow_internet_access, Fields(object).boolean("allow_internet_access"));
    GB_TRY(parse_egress(object, "", out.network));
    out.egress_json = json::serialize(shown_egress(object));
    return out;
}

}  // namespace gb::api
