// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_report.h"

#include <cstdio>

#include <boost/json.hpp>
#include <fcntl.h>
#include <fmt/format.h>

#include "base/file.h"

namespace gb::cli {
namespace fs = std::filesystem;
namespace json = boost::json;

std::string printable(std::string_view text) {
    constexpr std::size_t kMost = 600;
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
    std::string out;
    for (const char c : text.substr(0, kMost)) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\n')
            out += "; ";
        else
            out += byte < 0x20 || byte == 0x7f ? '?' : c;
    }
    return text.size() > kMost ? out + "..." : out;
}

Result<DemoReport> DemoReport::open(fs::path folder, Print print) {
    GB_TRY(make_dirs(folder));
    GB_TRY_ASSIGN(UniqueFd transcript,
                  open_file(folder / "transcript.txt", O_WRONLY | O_CREAT | O_TRUNC, 0644));
    return DemoReport(std::move(folder), print, std::move(transcript));
}

void DemoReport::say(std::string_view text) {
    const std::string line = std::string(text) + "\n";
    (void)write_all(transcript_.get(), line);  // what cannot be kept is seen when the results are
    if (make_room_) make_room_();
    if (print_ == Print::nothing) return;
    (void)std::fputs(line.c_str(), stdout);  // whoever reads it may be gone, and the demo ends properly all the same
    std::fflush(stdout);
}

void DemoReport::heading(std::string_view text) {
    section_ = text;
    say(fmt::format("\n{}", text));
}

void DemoReport::show(std::string_view what, bool good, std::string_view text) {
    failed_ = failed_ || !good;
    const std::string clean = printable(text);
    findings_.push_back(
        json::object{{"section", section_}, {"finding", what}, {"ok", good}, {"text", clean}});
    say(fmt::format("  {} {}: {}", good ? "ok  " : "FAIL", what, clean));
}

Status DemoReport::keep(std::string_view name, std::string_view content) {
    return write_file_atomic(folder_ / name, content);
}

json::object DemoReport::summary() const {
    json::object out{{"ok", !failed_}, {"folder", folder_.string()}};
    for (const auto& fact : facts_) out[fact.key()] = fact.value();
    out["findings"] = findings_;
    return out;
}

}  // namespace gb::cli
