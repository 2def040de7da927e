// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/paths.h"

#include <vector>

#include <fmt/format.h>

namespace gb::agent {
namespace {

// Length of the valid UTF-8 sequence at the start of `s`, 0 if there is none (RFC 3629).
std::size_t sequence_length(std::string_view s) {
    auto at = [&](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0U; };
    const unsigned first = at(0);
    if (first < 0x80) return 1;
    std::size_t length = 0;
    unsigned low = 0x80, high = 0xBF;  // bounds of the second byte: no overlong forms, no surrogates
    if (first >= 0xC2 && first <= 0xDF) {
        length = 2;
    } else if (first >= 0xE0 && first <= 0xEF) {
        length = 3;
        if (first == 0xE0) low = 0xA0;
        if (first == 0xED) high = 0x9F;
    } else if (first >= 0xF0 && first <= 0xF4) {
        length = 4;
        if (first == 0xF0) low = 0x90;
        if (first == 0xF4) high = 0x8F;
    } else {
        return 0;
    }
    if (at(1) < low || at(1) > high) return 0;
    for (std::size_t i = 2; i < length; ++i)
        if ((at(i) & 0xC0U) != 0x80U) return 0;
    return length;
}

}  // namespace

std::string clean_path(std::string_view path) {
    std::vector<std::string_view> kept;
    while (!path.empty()) {
        const std::size_t slash = path.find('/');
        const std::string_view part = path.substr(0, slash);
        path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
        if (part.empty() || part == ".") continue;
        if (part != "..")
            kept.push_back(part);
        else if (!kept.empty())
            kept.pop_back();
    }
    if (kept.empty()) return "/";
    std::string out;
    for (std::string_view part : kept) {
        out.push_back('/');
        out.append(part);
    }
    return out;
}

Result<std::string> resolve_path(std::string_view path, std::string_view home, std::string_view base) {
    std::string whole(path);
    if (path.starts_with('~')) {
        if (path.size() > 1 && path[1] != '/')
            return fail(
                ErrorCode::invalid_argument,
                fmt::format("path '{}': only ~ and ~/… are understood, not another user's home", path));
        whole = join_path(home, path.substr(1));
    } else if (!path.starts_with('/')) {
        whole = join_path(base, path);
    }
    // Every system call would end it there.
    if (whole.find('\0') != std::string::npos)
        return fail(ErrorCode::invalid_argument, "path holds a NUL byte");
    return clean_path(whole);
}

std::string_view base_name(std::string_view clean) {
    if (clean == "/") return clean;
    return clean.substr(clean.rfind('/') + 1);
}

std::string_view parent_path(std::string_view clean) {
    const std::size_t slash = clean.rfind('/');
    return slash == 0 || slash == std::string_view::npos ? std::string_view("/") : clean.substr(0, slash);
}

std::string join_path(std::string_view folder, std::string_view name) {
    std::string out(folder);
    if (!out.ends_with('/')) out.push_back('/');
    while (name.starts_with('/')) name.remove_prefix(1);
    out.append(name);
    return out;
}

std::string to_utf8(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    while (!bytes.empty()) {
        const std::size_t length = sequence_length(bytes);
        if (length > 0)
            out.append(bytes.substr(0, length));
        else
            out.append("\xEF\xBF\xBD");
        bytes.remove_prefix(length > 0 ? length : 1);
    }
    return out;
}

}  // namespace gb::agent
