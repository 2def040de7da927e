// SPDX-License-Identifier: Apache-2.0
#include "image/build_folder.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <sys/file.h>
#include <sys/mount.h>

#include <fcntl.h>
#include <fmt/format.h>

#include "base/file.h"
#include "base/ids.h"
#include "base/log.h"

namespace gb::image {
namespace fs = std::filesystem;
namespace {

// Mount points below `path`, the innermost last. proc(5), mountinfo: the fifth field, blanks written as \040.
Result<std::vector<std::string>> mounts_below(const fs::path& path) {
    GB_TRY_ASSIGN(std::string table, read_file("/proc/self/mountinfo"));
    const std::string prefix = path.string() + "/";
    std::vector<std::string> out;
    std::size_t line = 0;
    while (line < table.size()) {
        std::size_t end = std::min(table.find('\n', line), table.size());
        std::size_t start = line;
        for (int field = 0; field < 4 && start < end; ++field) start = table.find(' ', start) + 1;
        std::string target = table.substr(start, table.find(' ', start) - start);
        for (std::size_t at; (at = target.find("\\040")) != std::string::npos;) target.replace(at, 4, " ");
        if (target.starts_with(prefix)) out.push_back(target);
        line = end + 1;
    }
    return out;
}

// MemAvailable of proc(5), 0 when unknown.
long available_memory_mib() {
    constexpr std::string_view kField = "MemAvailable:";
    auto text = read_file("/proc/meminfo");
    std::size_t at = text ? text->find(kField) : std::string::npos;
    return at == std::string::npos ? 0 : std::strtol(text->c_str() + at + kField.size(), nullptr, 10) / 1024;
}

}  // namespace

Status remove_build_tree(const fs::path& path) {
    std::error_code ec;
    fs::path real = fs::canonical(path, ec);
    if (ec)
        return ec.value() == ENOENT ? Status()
                                    : fail_errno(ec.value(), fmt::format("find {}", path.string()));
    GB_TRY_ASSIGN(std::vector<std::string> mounts, mounts_below(real));
    std::ranges::reverse(mounts);
    mounts.push_back(real.string());  // it may be a tmpfs itself
    for (const std::string& target : mounts) ::umount2(target.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    GB_TRY_ASSIGN(mounts, mounts_below(real));
    if (!mounts.empty())
        return fail(ErrorCode::failed_precondition,
                    fmt::format("{} is still mounted; unmount it", mounts.front()));
    return remove_tree(real);
}

Result<BuildFolder> BuildFolder::make(const fs::path& parent, std::string_view name, int memory_mib) {
    GB_TRY(make_dirs(parent));
    GB_TRY_ASSIGN(UniqueFd lock, open_file(parent / fmt::format(".lock-{}", name), O_RDWR | O_CREAT));
    while (::flock(lock.get(), LOCK_EX) != 0)
        if (errno != EINTR) return fail_errno(fmt::format("lock {} in {}", name, parent.string()));
    const std::string prefix = fmt::format(".build-{}-", name);
    std::error_code ec;
    std::vector<fs::path> stale;
    for (fs::directory_iterator it(parent, ec), end; !ec && it != end; it.increment(ec)) {
        std::string entry = it->path().filename().string();
        // The random part has no '-': "base-x" is not taken for a leftover of "base".
        if (entry.starts_with(prefix) && entry.find('-', prefix.size()) == std::string::npos)
            stale.push_back(it->path());
    }
    for (const fs::path& folder : stale) GB_TRY(remove_build_tree(folder));
    fs::path path = parent / (prefix + random_id(8));
    GB_TRY(make_dirs(path));
    if (memory_mib > 0 && available_memory_mib() >= 2L * memory_mib) {
        std::string options = fmt::format("mode=0755,size={}M", memory_mib);
        if (::mount("tmpfs", path.c_str(), "tmpfs", 0, options.c_str()) != 0)
            log::debug("build folder is on disk", {{"path", path.string()}, {"errno", errno}});
    }
    return BuildFolder(std::move(lock), std::move(path));
}

BuildFolder::~BuildFolder() {
    if (!lock_) return;
    if (auto status = remove_build_tree(path_); !status)
        log::warn("build folder stays", {{"path", path_.string()}, {"error", status.error().message}});
}

}  // namespace gb::image
