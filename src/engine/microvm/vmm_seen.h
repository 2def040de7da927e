// SPDX-License-Identifier: Apache-2.0
// What a VMM root was made of, written down beside it: as long as stat(2) says the same of every file, nothing has to be
// run, read and hashed again at the start of a server. A text: what the program asked for, the answer, and a line for
// each file that the answer depends on.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gb::engine {

struct VmmSeen {
    std::string asked;    // one line; another one is never answered with this
    std::string id;       // of the root
    std::string version;  // of QEMU, as text
    std::vector<std::string> files;  // marks_of() them, from before they were read
};

// Of each file what stat(2) says, or that it is absent.
std::vector<std::string> marks_of(const std::vector<std::filesystem::path>& files);
Status put_seen(const std::filesystem::path& file, const VmmSeen& seen);
// Nothing when it is of another question, when a file has changed, come or gone, or when it cannot be read.
std::optional<VmmSeen> get_seen(const std::filesystem::path& file, std::string_view asked);

}  // namespace gb::engine
