// SPDX-License-Identifier: Apache-2.0
#include "node/folder_size.h"

#include <cerrno>
#include <memory>
#include <string>

#include <sys/stat.h>

#include <fmt/format.h>
#include <fts.h>

namespace gb {

Result<std::uint64_t> own_bytes(const std::filesystem::path& folder) {
    constexpr std::uint64_t kBlock = 512;  // the unit of st_blocks, whatever the file system's is
    const std::string what = fmt::format("look through '{}'", folder.string());
    std::string root = folder.string();
    char* const roots[] = {root.data(), nullptr};
    std::unique_ptr<FTS, int (*)(FTS*)> walk(
        ::fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, nullptr), ::fts_close);
    if (!walk) return fail_errno(what);
    std::uint64_t bytes = 0;
    for (;;) {
        errno = 0;
        const FTSENT* entry = ::fts_read(walk.get());
        if (entry == nullptr) break;
        switch (entry->fts_info) {
            case FTS_DP:  // counted on the way down
                break;
            case FTS_NS:
            case FTS_DNR:
            case FTS_ERR:
                if (entry->fts_errno != ENOENT || entry->fts_level == FTS_ROOTLEVEL)
                    return fail_errno(entry->fts_errno, what);
                break;
            case FTS_D:
                bytes += static_cast<std::uint64_t>(entry->fts_statp->st_blocks) * kBlock;
                break;
            default:
                if (entry->fts_statp->st_nlink <= 1)
                    bytes += static_cast<std::uint64_t>(entry->fts_statp->st_blocks) * kBlock;
        }
    }
    if (errno != 0) return fail_errno(what);
    return bytes;
}

}  // namespace gb
