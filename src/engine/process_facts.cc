// SPDX-License-Identifier: Apache-2.0
#include "engine/process_facts.h"

#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/words.h"

namespace gb::engine {
namespace {

constexpr std::size_t kStartTime = 22;   // its place in stat, counted from 1
constexpr std::size_t kFirstBehind = 3;  // of the first field behind the name

template <class T>
Result<T> number(std::string_view word) {
    T value{};
    auto [end, bad] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (bad != std::errc() || end != word.data() + word.size())
        return fail(ErrorCode::data_loss, fmt::format("not a number: {}", word));
    return value;
}

}  // namespace

Result<std::uint64_t> parse_start_ticks(std::string_view stat) {
    const std::size_t name_end = stat.rfind(')');
    if (name_end == std::string_view::npos)
        return fail(ErrorCode::data_loss, "not a line of /proc/<pid>/stat");
    const auto fields = words(stat.substr(name_end + 1));
    if (fields.size() <= kStartTime - kFirstBehind)
        return fail(ErrorCode::data_loss, "/proc/<pid>/stat lacks the start time");
    return number<std::uint64_t>(fields[kStartTime - kFirstBehind]);
}

Result<uid_t> parse_uid(std::string_view status) {
    constexpr std::string_view kKey = "\nUid:";
    const std::size_t at = status.find(kKey);
    if (at == std::string_view::npos) return fail(ErrorCode::data_loss, "/proc/<pid>/status lacks the user");
    std::string_view line = status.substr(at + kKey.size());
    const auto fields = words(line.substr(0, line.find('\n')));
    if (fields.size() != 4) return fail(ErrorCode::data_loss, "/proc/<pid>/status lacks the user");
    for (std::string_view field : fields)
        if (field != fields.front())
            return fail(ErrorCode::failed_precondition, "a process of more than one user");
    return number<uid_t>(fields.front());
}

Result<ProcessFacts> read_process_facts(pid_t pid) {
    ProcessFacts out;
    GB_TRY_ASSIGN(std::string stat, read_file(fmt::format("/proc/{}/stat", pid)));
    GB_TRY_ASSIGN(out.start_ticks, parse_start_ticks(stat));
    GB_TRY_ASSIGN(std::string status, read_file(fmt::format("/proc/{}/status", pid)));
    GB_TRY_ASSIGN(out.uid, parse_uid(status));
    return out;
}

}  // namespace gb::engine
