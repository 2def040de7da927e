// SPDX-License-Identifier: Apache-2.0
#include "net/decision_log.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include <sys/stat.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

namespace gb::net {
namespace {

constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND;
constexpr std::size_t kReadAtOnce = std::size_t{1} << 20;

std::filesystem::path older(std::filesystem::path log) {
    log += ".1";
    return log;
}

// A place in a log: a file that keeps its identity when it becomes the older part, and the bytes of it that
// were read.
struct Position {
    std::uint64_t inode = 0, offset = 0;
};

Result<Position> parse_position(std::string_view text) {
    Position out;
    const std::size_t dash = text.find('-');
    auto number = [](std::string_view part, std::uint64_t& value) {
        auto [end, ec] = std::from_chars(part.data(), part.data() + part.size(), value);
        return ec == std::errc{} && end == part.data() + part.size();
    };
    if (dash == std::string_view::npos || !number(text.substr(0, dash), out.inode) ||
        !number(text.substr(dash + 1), out.offset))
        return fail(ErrorCode::invalid_argument, "not a position of a decision log");
    return out;
}

// Whole lines of an open file from an offset on, which is moved behind them.
Status take_lines(int fd, std::uint64_t& offset, std::size_t limit, std::vector<std::string>& lines) {
    std::string buffer;
    while (lines.size() < limit) {
        buffer.resize(kReadAtOnce);
        const ssize_t n = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno("read decision log");
        buffer.resize(static_cast<std::size_t>(n));
        std::size_t at = 0;
        for (std::size_t end = buffer.find('\n'); end != std::string::npos && lines.size() < limit;
             end = buffer.find('\n', at)) {
            lines.push_back(buffer.substr(at, end - at));
            at = end + 1;
        }
        offset += at;
        if (at == 0) break;
    }
    return {};
}

}  // namespace

Result<LogPart> read_lines(const std::filesystem::path& log, std::string_view after, std::size_t limit) {
    Position from;
    if (!after.empty()) {
        GB_TRY_ASSIGN(from, parse_position(after));
    }
    // Opened newest first: a rotation in between is then seen as a file that is there twice, never as a gap.
    std::vector<std::pair<UniqueFd, std::uint64_t>> files;
    for (const std::filesystem::path& path : {log, older(log)}) {
        UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        struct stat st{};
        if (!fd || ::fstat(fd.get(), &st) != 0) continue;
        if (!files.empty() && files.front().second == st.st_ino) continue;
        files.emplace(files.begin(), std::move(fd), st.st_ino);
    }
    const auto known = std::ranges::find(files, from.inode, &std::pair<UniqueFd, std::uint64_t>::second);
    if (known == files.end()) from = {};
    LogPart out;
    out.next = std::string(after);
    for (auto file = known == files.end() ? files.begin() : known; file != files.end(); ++file) {
        std::uint64_t offset = file->second == from.inode ? from.offset : 0;
        GB_TRY(take_lines(file->first.get(), offset, limit, out.lines));
        out.next = fmt::format("{}-{}", file->second, offset);
        if (out.lines.size() >= limit) break;
    }
    return out;
}

Status move_log(const std::filesystem::path& from, const std::filesystem::path& to) {
    for (const auto& [source, target] : {std::pair(older(from), older(to)), std::pair(from, to)})
        if (::rename(source.c_str(), target.c_str()) != 0 && errno != ENOENT)
            return fail_errno(fmt::format("rename {} to {}", source.string(), target.string()));
    return {};
}

Result<DecisionLog> DecisionLog::open(std::filesystem::path path, std::size_t limit) {
    GB_TRY_ASSIGN(UniqueFd fd, open_file(path, kFlags, 0640));
    struct stat st{};
    if (::fstat(fd.get(), &st) != 0) return fail_errno(fmt::format("stat {}", path.string()));
    return DecisionLog(std::move(path), limit, std::move(fd), static_cast<std::size_t>(st.st_size));
}

Status DecisionLog::rotate() {
    const std::filesystem::path old = older(path_);
    if (::rename(path_.c_str(), old.c_str()) != 0)
        return fail_errno(fmt::format("rename to {}", old.string()));
    GB_TRY_ASSIGN(fd_, open_file(path_, kFlags, 0640));
    size_ = 0;
    return {};
}

Status DecisionLog::write(std::string_view lines, std::uint64_t count) {
    auto put = [&]() -> Status {
        if (size_ > 0 && size_ + lines.size() > limit_) GB_TRY(rotate());
        GB_TRY(write_all(fd_.get(), lines));
        size_ += lines.size();
        return {};
    };
    Status status = put();
    if (!status) unwritten_ += count;
    return status;
}

Status DecisionLog::append(std::span<const Decision> decisions) {
    std::string lines;
    for (const Decision& decision : decisions) lines += decision_line(decision);
    if (lines.empty()) return {};
    return write(lines, decisions.size());
}

Status DecisionLog::note_suppressed(std::uint64_t total) {
    std::uint64_t missing = total - std::min(total, suppressed_) + unwritten_;
    if (missing == 0) return {};
    GB_TRY(write(fmt::format("{{\"time\":\"{}\",\"suppressed\":{}}}\n", rfc3339(now_ms()), missing), 0));
    suppressed_ = total;
    unwritten_ = 0;
    return {};
}

}  // namespace gb::net
