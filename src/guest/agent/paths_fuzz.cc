// SPDX-License-Identifier: Apache-2.0
// A path of a request, the user's home and the base folder, each on a line. The standard library's normal
// form is the second opinion.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "guest/agent/paths.h"

namespace {

using namespace gb::agent;

std::string normal(std::string_view path) {
    while (path.starts_with('/')) path.remove_prefix(1);  // it keeps several of them
    std::string out = std::filesystem::path("/" + std::string(path)).lexically_normal().string();
    if (out.size() > 1 && out.ends_with('/')) out.pop_back();
    return out;
}

std::string take_line(std::string_view& text) {
    const std::size_t end = std::min(text.size(), text.find('\n'));
    std::string line(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
    return line;
}

void check_resolved(const std::string& path) {
    if (!path.starts_with('/') || clean_path(path) != path) std::abort();
    if (path.find('\0') != std::string::npos) std::abort();
    // It means itself to everybody.
    if (resolve_path(path, "/somebody", "/somewhere") != path) std::abort();
    const std::string folder(parent_path(path));
    const std::string name(base_name(path));
    if (clean_path(folder) != folder || (path == "/" ? name != "/" : name.empty() || name.contains('/')))
        std::abort();
    if (path != "/" && join_path(folder, name) != path) std::abort();
}

void check_utf8(std::string_view bytes) {
    const std::string text = to_utf8(bytes);
    if (to_utf8(text) != text || text.size() < bytes.size()) std::abort();
    if (std::ranges::all_of(bytes, [](char c) { return c >= 0; }) && text != bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    if (clean_path(text) != normal(text)) std::abort();
    check_utf8(text);

    const std::string path = take_line(text), home = take_line(text), base = take_line(text);
    std::string meant = path;
    if (path.starts_with('~'))
        meant = home + "/" + path.substr(1);
    else if (!path.starts_with('/'))
        meant = base + "/" + path;
    const bool somebody = path.size() > 1 && path[0] == '~' && path[1] != '/';
    const auto resolved = resolve_path(path, home, base);
    if (resolved.has_value() == (somebody || meant.find('\0') != std::string::npos)) std::abort();
    if (!resolved) return 0;
    if (*resolved != normal(meant)) std::abort();
    check_resolved(*resolved);
    return 0;
}
