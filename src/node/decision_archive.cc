// SPDX-License-Identifier: Apache-2.0
#include "node/decision_archive.h"

#include <system_error>

#include <sys/stat.h>

#include "base/file.h"
#include "net/decision_log.h"

namespace gb {
namespace fs = std::filesystem;

fs::path archived_log(const fs::path& archive, const std::string& id) {
    return archive / (id + ".log");
}

Status keep_decisions(const fs::path& archive, const std::string& id, const SandboxFolder& folder) {
    GB_TRY(make_dirs(archive, 0700));
    return net::move_log(folder.log(), archived_log(archive, id));
}

void remove_old_decisions(const fs::path& archive, std::int64_t before_ms) {
    std::error_code ec;
    for (const fs::directory_entry& entry : fs::directory_iterator(archive, ec)) {
        struct stat st{};
        if (::stat(entry.path().c_str(), &st) != 0) continue;
        const std::int64_t written_ms =
            std::int64_t{st.st_mtim.tv_sec} * 1000 + st.st_mtim.tv_nsec / 1'000'000;
        std::error_code ignored;
        if (written_ms < before_ms) fs::remove(entry.path(), ignored);
    }
}

}  // namespace gb
