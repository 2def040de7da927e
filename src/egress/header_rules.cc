// SPDX-License-Identifier: Apache-2.0
#include "egress/header_rules.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "http/head_check.h"

namespace gb::egress {
namespace {

constexpr std::string_view kReserved = "${e2b.";
constexpr std::string_view kSecret = "${e2b.secrets.";
constexpr std::size_t kLongestName = 256;
constexpr std::size_t kLongestSecretName = 128;  // contract 2.4

// Who may set these decides where the message ends, whom it is for, or what the connection is.
constexpr std::array<std::string_view, 11> kForbidden{
    "Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade",       "Keep-Alive",
    "TE",   "Trailer",        "Trailers",          "Expect",     "HTTP2-Settings"};

bool is_forbidden(std::string_view name) {
    return std::ranges::any_of(kForbidden, [&](std::string_view f) { return http::iequals(f, name); }) ||
           (name.size() >= 6 && http::iequals(name.substr(0, 6), "Proxy-"));
}

bool is_secret_name(std::string_view name) {
    return !name.empty() && name.size() <= kLongestSecretName && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
               c == '-';
    });
}

std::unexpected<Error> refuse(const HeaderRule& rule, std::string_view what) {
    return fail(ErrorCode::invalid_argument, fmt::format("header \"{}\": {}", rule.name, what));
}

// Calls on_text and on_secret for the parts of a value, in order.
Status take_apart(const HeaderRule& rule, const std::function<void(std::string_view)>& on_text,
                  const std::function<Status(std::string_view)>& on_secret) {
    std::string_view rest = rule.value;
    for (;;) {
        const std::size_t at = rest.find(kReserved);
        on_text(rest.substr(0, at));
        if (at == std::string_view::npos) return {};
        rest.remove_prefix(at);
        const std::size_t end = rest.find('}');
        if (end == std::string_view::npos) return refuse(rule, "a placeholder ${e2b.… has no end");
        if (!rest.starts_with(kSecret))
            return refuse(rule, "unknown placeholder; there is ${e2b.secrets.<name>} and no other");
        const std::string_view name = rest.substr(kSecret.size(), end - kSecret.size());
        if (!is_secret_name(name))
            return refuse(rule, "the name of a secret has 1 to 128 of the characters a-z A-Z 0-9 _ -");
        GB_TRY(on_secret(name));
        rest.remove_prefix(end + 1);
    }
}

Status check_rule(const HeaderRule& rule) {
    // A name that is no token is not repeated: it may be anything.
    if (!http::is_token(rule.name) || rule.name.size() > kLongestName)
        return fail(ErrorCode::invalid_argument,
                    "a header's name is no token of HTTP, or longer than 256 bytes");
    if (is_forbidden(rule.name))
        return refuse(rule, "belongs to the connection or frames the message, and cannot be set");
    if (rule.value.size() > kLongestHeaderValue) return refuse(rule, "the value is longer than 8 KiB");
    if (!http::is_field_value(rule.value))
        return refuse(rule, "the value has line ends or control characters");
    return take_apart(rule, [](std::string_view) {}, [](std::string_view) { return Status{}; });
}

Result<std::string> expand(const HeaderRule& rule, const SecretLookup& lookup) {
    std::string out;
    GB_TRY(take_apart(
        rule, [&](std::string_view text) { out += text; },
        [&](std::string_view name) -> Status {
            const Result<std::string> value =
                lookup ? lookup(name) : fail(ErrorCode::failed_precondition, "no secrets here");
            if (!value)
                return fail(value.error().code,
                            fmt::format("header \"{}\": the secret \"{}\" cannot be had", rule.name, name));
            if (!http::is_field_value(*value))
                return fail(
                    ErrorCode::failed_precondition,
                    fmt::format("header \"{}\": the secret \"{}\" has line ends or control characters",
                                rule.name, name));
            if (out.size() + value->size() > kLongestExpandedValue)
                return fail(
                    ErrorCode::failed_precondition,
                    fmt::format("header \"{}\": longer than 32 KiB with the secret \"{}\"", rule.name, name));
            out += *value;
            return {};
        }));
    return out;
}

}  // namespace

Status check_rules(const std::vector<HeaderRule>& rules) {
    if (rules.size() > kMostHeaderRules)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("more than {} headers for one host", kMostHeaderRules));
    for (const HeaderRule& rule : rules) GB_TRY(check_rule(rule));
    return {};
}

std::vector<std::string> secret_names(const std::vector<HeaderRule>& rules) {
    std::vector<std::string> out;
    for (const HeaderRule& rule : rules)
        (void)take_apart(
            rule, [](std::string_view) {},
            [&](std::string_view name) {
                out.emplace_back(name);
                return Status{};
            });
    std::ranges::sort(out);
    out.erase(std::ranges::unique(out).begin(), out.end());
    return out;
}

Status apply(const std::vector<HeaderRule>& rules, http::Headers& headers, const SecretLookup& lookup) {
    GB_TRY(check_rules(rules));
    std::vector<std::string> values;
    for (const HeaderRule& rule : rules) {
        GB_TRY_ASSIGN(std::string value, expand(rule, lookup));
        values.push_back(std::move(value));
    }
    for (std::size_t i = 0; i < rules.size(); ++i) headers.set(rules[i].name, std::move(values[i]));
    return {};
}

}  // namespace gb::egress
