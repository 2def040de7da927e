// SPDX-License-Identifier: Apache-2.0
#include "control/template_name.h"

#include <algorithm>

#include <fmt/format.h>

namespace gb {
namespace {

constexpr std::size_t kMost = 128;

bool is_word(std::string_view text, std::string_view also) {
    return !text.empty() && text.size() <= kMost && std::ranges::all_of(text, [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || also.contains(c);
    });
}

bool is_uuid(std::string_view text) {
    if (text.size() != 36) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        if (dash ? c != '-' : !hex) return false;
    }
    return true;
}

std::unexpected<Error> bad_name(std::string_view text) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format(
            "invalid template name '{}': it must be [namespace/]name[:tag] of letters, digits, '-' and "
            "'_', the tag also of '.', at most {} characters each",
            text, kMost));
}

}  // namespace

Status check_tag(std::string_view tag) {
    if (is_word(tag, "-_.") && !is_uuid(tag)) return {};
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("invalid tag '{}': it must be of small letters, digits, '-', '_' and '.', at most {} "
                    "characters, and not a UUID",
                    tag, kMost));
}

Result<TemplateName> parse_template_name(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return bad_name(text);
    std::string whole(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
    std::ranges::transform(whole, whole.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
    TemplateName out;
    std::string_view rest = whole;
    if (const std::size_t slash = rest.find('/'); slash != std::string_view::npos) {
        out.space = rest.substr(0, slash);
        rest.remove_prefix(slash + 1);
        if (!is_word(out.space, "-_")) return bad_name(text);
    }
    if (const std::size_t colon = rest.find(':'); colon != std::string_view::npos) {
        out.tag = rest.substr(colon + 1);
        rest = rest.substr(0, colon);
        if (!is_word(out.tag, "-_.")) return bad_name(text);
    }
    out.name = rest;
    if (!is_word(out.name, "-_")) return bad_name(text);
    return out;
}

Result<TemplateName> parse_new_template_name(std::string_view text, std::string_view slug) {
    GB_TRY_ASSIGN(TemplateName out, parse_template_name(text));
    if (!out.space.empty() && out.space != slug)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("the namespace '{}' is not your team's: it is '{}'", out.space, slug));
    out.space = slug;
    if (out.tag.empty()) out.tag = kDefaultTag;
    GB_TRY(check_tag(out.tag));
    return out;
}

}  // namespace gb
