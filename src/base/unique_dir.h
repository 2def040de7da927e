// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <dirent.h>

namespace gb {

struct CloseDir {
    void operator()(DIR* dir) const { ::closedir(dir); }
};

// An open folder for readdir, closed at the end of its life.
using UniqueDir = std::unique_ptr<DIR, CloseDir>;

}  // namespace gb
