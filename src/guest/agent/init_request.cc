// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/init_request.h"

#include <algorithm>
#include <cstdio>

#include <fcntl.h>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/log.h"
#include "guest/agent/json_fields.h"

namespace gb::agent {
namespace {

Status check_environment(const Environment& env) {
    for (const auto& [name, value] : env)
        if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos ||
            value.find('\0') != std::string::npos)
            return fail(ErrorCode::invalid_argument, fmt::format("envVars: '{}' cannot be set", name));
    return {};
}

// These become file names, environment variables and arguments of system calls: a NUL byte would cut them
// short.
Result<std::optional<std::string>> text_field(const JsonFields& fields, std::string_view name) {
    GB_TRY_ASSIGN(auto text, fields.text(name));
    if (text && text->find('\0') != std::string::npos)
        return fail(ErrorCode::invalid_argument, fmt::format("{}: must not hold a NUL byte", name));
    return text;
}

Result<std::optional<Authority>> authority_field(const JsonFields& fields) {
    GB_TRY_ASSIGN(const auto bundle, fields.text("caBundle"));
    GB_TRY_ASSIGN(const auto hash, fields.text("caHash"));
    if (!bundle) return std::nullopt;
    return make_authority(*bundle, hash.value_or(""));
}

// It becomes a line of /etc/hosts too.
bool is_hostname(std::string_view text) {
    return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
               c == '_' || c == '.';
    });
}

}  // namespace

Result<InitRequest> parse_init_request(std::string_view body) {
    GB_TRY_ASSIGN(const JsonFields fields, JsonFields::parse(body));
    InitRequest request;
    GB_TRY_ASSIGN(request.env, fields.string_map("envVars"));
    if (request.env) GB_TRY(check_environment(*request.env));
    GB_TRY_ASSIGN(request.access_token, text_field(fields, "accessToken"));
    GB_TRY_ASSIGN(request.default_user, text_field(fields, "defaultUser"));
    GB_TRY_ASSIGN(request.default_workdir, text_field(fields, "defaultWorkdir"));
    GB_TRY_ASSIGN(request.hostname, text_field(fields, "hostname"));
    GB_TRY_ASSIGN(request.sandbox_id, text_field(fields, "sandboxID"));
    GB_TRY_ASSIGN(request.template_id, text_field(fields, "templateID"));
    if (request.default_user && request.default_user->empty())
        return fail(ErrorCode::invalid_argument, "defaultUser: must not be empty");
    if (request.default_workdir && !request.default_workdir->empty() &&
        !request.default_workdir->starts_with('/'))
        return fail(ErrorCode::invalid_argument, "defaultWorkdir: must be an absolute path");
    if (request.hostname && !is_hostname(*request.hostname))
        return fail(ErrorCode::invalid_argument,
                    "hostname: must have 1 to 64 characters, each a letter, a digit, '-', '_' or '.'");

    GB_TRY_ASSIGN(const auto timestamp, fields.text("timestamp"));
    if (timestamp) {
        request.timestamp_ms = parse_rfc3339(*timestamp);
        if (!request.timestamp_ms)
            return fail(ErrorCode::invalid_argument, "timestamp: not an RFC 3339 time");
    }
    GB_TRY_ASSIGN(const auto entropy, fields.text("entropy"));
    if (entropy) {
        request.entropy = base64_decode(*entropy);
        if (!request.entropy) return fail(ErrorCode::invalid_argument, "entropy: not base64");
    }
    GB_TRY_ASSIGN(request.authority, authority_field(fields));
    return request;
}

Result<Authority> parse_trust_request(std::string_view body) {
    GB_TRY_ASSIGN(const JsonFields fields, JsonFields::parse(body));
    GB_TRY_ASSIGN(const auto authority, authority_field(fields));
    if (!authority) return fail(ErrorCode::invalid_argument, "caBundle: missing");
    return *authority;
}

void apply_init_request(const InitRequest& request, Settings& settings) {
    if (request.access_token) settings.access_token = *request.access_token;
    if (request.default_user) settings.default_user = *request.default_user;
    if (request.default_workdir) settings.default_workdir = *request.default_workdir;
    if (request.sandbox_id) settings.sandbox_id = *request.sandbox_id;
    if (request.template_id) settings.template_id = *request.template_id;
    if (request.env) settings.env = *request.env;
    settings.env["E2B_SANDBOX"] = "true";
    if (!settings.sandbox_id.empty()) settings.env["E2B_SANDBOX_ID"] = settings.sandbox_id;
    if (!settings.template_id.empty()) settings.env["E2B_TEMPLATE_ID"] = settings.template_id;
    ++settings.generation;
}

namespace {

// Whole or not at all for a reader. Not synced: the folder is in memory.
Status replace_file(const std::string& path, std::string_view data, unsigned mode) {
    const std::string temporary = path + ".new";
    GB_TRY_ASSIGN(const UniqueFd fd, open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC, mode));
    GB_TRY(write_all(fd.get(), data));
    if (::rename(temporary.c_str(), path.c_str()) != 0) return fail_errno("rename to " + path);
    return {};
}

}  // namespace

Status write_environment_file(const std::string& dir, const Settings& settings) {
    GB_TRY(make_dirs(dir));
    return replace_file(dir + "/envs.json", environment_json(global_environment(settings)), 0600);
}

Status write_state_files(const std::string& dir, const Settings& settings) {
    GB_TRY(write_environment_file(dir, settings));
    return replace_file(dir + "/generation", std::to_string(settings.generation), 0644);
}

std::string environment_json(const Environment& env) {
    std::string out = "{";
    for (const auto& [name, value] : env) {
        if (out.size() > 1) out += ',';
        out += log::json_quote(name) + ":" + log::json_quote(value);
    }
    return out + "}";
}

}  // namespace gb::agent
