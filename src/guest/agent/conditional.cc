// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/conditional.h"

#include <fmt/format.h>

#include "guest/agent/http_values.h"

namespace gb::agent {
namespace {

std::string_view without_weak(std::string_view tag) {
    return tag.starts_with("W/") ? tag.substr(2) : tag;
}

// Whether a list of entity tags names this one. A tag may hold commas, so the quotes decide where it ends.
bool names_tag(std::string_view list, const std::string& tag, bool weakly) {
    for (;;) {
        const std::size_t start = list.find_first_not_of(" \t,");
        if (start == std::string_view::npos) return false;
        list.remove_prefix(start);
        if (list.front() == '*') return true;
        const std::size_t open = list.starts_with("W/") ? 2 : 0;
        if (open >= list.size() || list[open] != '"') return false;
        const std::size_t close = list.find('"', open + 1);
        if (close == std::string_view::npos) return false;
        const std::string_view one = list.substr(0, close + 1);
        if ((weakly ? without_weak(one) : one) == tag) return true;
        list.remove_prefix(close + 1);
    }
}

}  // namespace

FileVersion version_of(const struct stat& info) {
    return {fmt::format("\"{:x}-{:x}-{:x}.{:x}\"", info.st_ino, info.st_size, info.st_mtim.tv_sec,
                        info.st_mtim.tv_nsec),
            info.st_mtim.tv_sec};
}

Condition check_conditions(const http::Headers& headers, const FileVersion& version) {
    if (const std::string* match = headers.find("If-Match")) {
        if (!names_tag(*match, version.etag, false)) return Condition::failed;
    } else if (const auto since = parse_http_date(headers.get("If-Unmodified-Since"))) {
        if (version.modified && *version.modified > *since) return Condition::failed;
    }
    if (const std::string* none = headers.find("If-None-Match")) {
        if (names_tag(*none, version.etag, true)) return Condition::not_modified;
    } else if (const auto since = parse_http_date(headers.get("If-Modified-Since"))) {
        if (version.modified && *version.modified <= *since) return Condition::not_modified;
    }
    return Condition::met;
}

bool range_applies(const http::Headers& headers, const FileVersion& version) {
    const std::string* condition = headers.find("If-Range");
    if (condition == nullptr) return true;
    if (const auto date = parse_http_date(*condition)) return version.modified == *date;
    return !version.etag.empty() && *condition == version.etag;  // a weak tag never matches (13.1.5)
}

}  // namespace gb::agent
