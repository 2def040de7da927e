#include "net/decision_log.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/file.h"

namespace gb::net {
namespace {

constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND;

}  // namespace

Result<DecisionLog> DecisionLog::open(std::filesystem::path path, std::size_t limit) {
    GB_TRY_ASSIGN(UniqueFd fd, open_file(path, kFlags, 0640));
    struct stat st{};
    if (::fstat(fd.get(), &st) != 0) return fail_errno(fmt::format("stat {}", path.string()));
    return DecisionLog(std::move(path), limit, std::move(fd), static_cast<std::size_t>(st.st_size));
}

Status DecisionLog::rotate() {
    std::filesystem::path old = path_;
    old += ".1";
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
