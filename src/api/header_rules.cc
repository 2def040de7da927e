#include "api/header_rules.h"

#include <algorithm>

#include <fmt/format.h>

namespace gb::api {
namespace {

constexpr std::string_view kBegin = "${e2b.";
constexpr std::string_view kSecrets = "secrets.";
constexpr std::size_t kMostHeaders = 64;  // of one host
constexpr std::size_t kLongestName = 128, kLongestValue = 8192;

bool is_token(std::string_view name) {  // RFC 9110 5.6.2
    static constexpr std::string_view kOther = "!#$%&'*+-.^_`|~";
    return !name.empty() && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               kOther.find(c) != std::string_view::npos;
    });
}

bool has_control(std::string_view value) {
    return std::ranges::any_of(
        value, [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; });
}

// The placeholders of a value, without "${e2b." and "}".
Result<std::vector<std::string>> placeholders(std::string_view value) {
    std::vector<std::string> out;
    for (std::size_t at = value.find(kBegin); at != std::string_view::npos; at = value.find(kBegin, at)) {
        at += kBegin.size();
        const std::size_t end = value.find('}', at);
        if (end == std::string_view::npos)
            return fail(ErrorCode::invalid_argument, "has a placeholder without its end");
        out.emplace_back(value.substr(at, end - at));
        at = end;
    }
    return out;
}

Status check_value(std::string_view value) {
    if (value.size() > kLongestValue)
        return fail(ErrorCode::invalid_argument, fmt::format("is longer than {} bytes", kLongestValue));
    if (has_control(value))
        return fail(ErrorCode::invalid_argument, "has a line end or another control character");
    GB_TRY_ASSIGN(const auto found, placeholders(value));
    for (std::string_view text : found) {
        if (text.starts_with("identity"))
            return fail(ErrorCode::invalid_argument, "names ${e2b.identity…}, which is not supported");
        if (!text.starts_with(kSecrets) || text.size() == kSecrets.size() ||
            text.find_first_of("{$") != text.npos)
            return fail(ErrorCode::invalid_argument, "has a placeholder that is not ${e2b.secrets.<name>}");
    }
    return {};
}

}  // namespace

Status check_header_rules(const net::NetworkRequest& request) {
    for (const auto& [host, headers] : request.rules) {
        if (headers.size() > kMostHeaders)
            return fail(
                ErrorCode::invalid_argument,
                fmt::format("validation error: rules for '{}' set more than {} headers", host, kMostHeaders));
        for (const net::HeaderRule& header : headers) {
            if (!is_token(header.name) || header.name.size() > kLongestName)
                return fail(
                    ErrorCode::invalid_argument,
                    fmt::format("validation error: rules for '{}' set a header whose name is none", host));
            if (Status good = check_value(header.value); !good)
                return fail(ErrorCode::invalid_argument,
                            fmt::format("validation error: header '{}' for '{}' {}", header.name, host,
                                        good.error().message));
        }
    }
    return {};
}

std::vector<std::string> secret_names(const net::NetworkRequest& request) {
    std::vector<std::string> out;
    for (const auto& [host, headers] : request.rules)
        for (const net::HeaderRule& header : headers) {
            const auto found = placeholders(header.value);
            if (!found) continue;
            for (std::string_view text : *found)
                if (text.starts_with(kSecrets)) out.emplace_back(text.substr(kSecrets.size()));
        }
    std::ranges::sort(out);
    out.erase(std::ranges::unique(out).begin(), out.end());
    return out;
}

}  // namespace gb::api
