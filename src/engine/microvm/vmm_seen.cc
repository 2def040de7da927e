// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/vmm_seen.h"

#include <sys/stat.h>

#include <fmt/format.h>

#include "base/file.h"

namespace gb::engine {
namespace fs = std::filesystem;
namespace {

// Whoever replaces or writes a file gives it another inode or another time of change, which no program can set.
std::string mark_of(const fs::path& path) {
    struct stat st{};
    if (::stat(path.c_str(), &st) != 0) return fmt::format("absent {}", path.string());
    return fmt::format("{}:{}:{}:{}.{:09} {}", st.st_dev, st.st_ino, st.st_size, st.st_ctim.tv_sec, st.st_ctim.tv_nsec,
                       path.string());
}

std::string_view take_line(std::string_view& text) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};  // a last line that is not whole counts for nothing
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    return line;
}

}  // namespace

std::vector<std::string> marks_of(const std::vector<fs::path>& files) {
    std::vector<std::string> out;
    for (const fs::path& path : files) out.push_back(mark_of(path));
    return out;
}

Status put_seen(const fs::path& file, const VmmSeen& seen) {
    std::string text = fmt::format("{}\n{}\n{}\n", seen.asked, seen.id, seen.version);
    for (const std::string& mark : seen.files) text += mark + "\n";
    return write_file_atomic(file, text + "end\n", 0600);
}

std::optional<VmmSeen> get_seen(const fs::path& file, std::string_view asked) {
    const auto text = read_file(file);
    if (!text) return std::nullopt;
    std::string_view rest = *text;
    VmmSeen out;
    out.asked = take_line(rest);
    out.id = take_line(rest);
    out.version = take_line(rest);
    if (out.asked != asked || out.id.empty()) return std::nullopt;
    for (;;) {
        const std::string_view line = take_line(rest);
        if (line == "end") return out;
        const std::size_t space = line.find(' ');
        if (space == std::string_view::npos) return std::nullopt;
        if (mark_of(line.substr(space + 1)) != line) return std::nullopt;
        out.files.emplace_back(line);
    }
}

}  // namespace gb::engine
