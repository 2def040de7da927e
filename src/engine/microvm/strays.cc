// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/strays.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <thread>

#include <sys/stat.h>
#include <sys/syscall.h>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "engine/microvm/vmm_root.h"

namespace gb::engine {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::milliseconds kEndRound{20};
constexpr int kRounds = 3000;  // a minute: machines with much memory take long to vanish

using FileId = std::pair<dev_t, ino_t>;

bool file_id(const fs::path& path, FileId& out) {
    struct stat st{};
    if (::stat(path.c_str(), &st) != 0) return false;
    out = {st.st_dev, st.st_ino};
    return true;
}

std::set<FileId> binaries(const fs::path& folder) {
    std::set<FileId> out;
    std::error_code ec;
    FileId id;
    for (const auto& entry : fs::directory_iterator(folder, ec))
        if (file_id(entry.path() / (kVmmBinary + 1), id)) out.insert(id);
    return out;
}

bool runs_one_of(pid_t pid, const std::set<FileId>& programs) {
    FileId id;
    return file_id(fmt::format("/proc/{}/exe", pid), id) && programs.contains(id);
}

}  // namespace

std::vector<pid_t> find_stray_vmms(const fs::path& folder) {
    const std::set<FileId> programs = binaries(folder);
    std::vector<pid_t> out;
    if (programs.empty()) return out;
    std::error_code ec;
    for (const auto& entry : fs::directory_iterator("/proc", ec)) {
        const std::string name = entry.path().filename().string();
        pid_t pid = 0;
        auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (bad == std::errc() && end == name.data() + name.size() && runs_one_of(pid, programs))
            out.push_back(pid);
    }
    return out;
}

bool runs_program(pid_t pid, const fs::path& program) {
    FileId id;
    return file_id(program, id) && runs_one_of(pid, {id});
}

Status kill_stray_vmms(const fs::path& folder, const std::vector<pid_t>& keep) {
    const std::set<FileId> programs = binaries(folder);
    for (int round = 0; round < kRounds; ++round) {
        std::vector<pid_t> pids = find_stray_vmms(folder);
        std::erase_if(pids, [&](pid_t pid) { return std::ranges::find(keep, pid) != keep.end(); });
        if (pids.empty()) return {};
        for (pid_t pid : pids) {
            // The descriptor pins the process, then it is looked at again: its number may have a new owner.
            UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
            if (!fd || !runs_one_of(pid, programs)) continue;
            ::syscall(SYS_pidfd_send_signal, fd.get(), SIGKILL, nullptr, 0);
        }
        std::this_thread::sleep_for(kEndRound);
    }
    return fail(ErrorCode::deadline_exceeded, "machines of an earlier server do not end");
}

}  // namespace gb::engine
