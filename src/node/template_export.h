// SPDX-License-Identifier: Apache-2.0
// Writes a captured template into an archive (template_archive.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"
#include "node/template_store.h"

namespace gb {

// Of the bytes that are moved, holes not counted; `part` is a file, or what is done with it. An error ends
// the work with that error.
using TransferProgress =
    std::function<Status(std::string_view part, std::uint64_t done, std::uint64_t total)>;

struct Exported {
    std::uint64_t data_bytes = 0;     // of the template's files, without holes
    std::uint64_t archive_bytes = 0;  // written
};

// To a descriptor that is written from its offset on, and may be a pipe. The build may be replaced meanwhile.
// Blocks.
Result<Exported> export_template(const StoredTemplate& stored, int out, const TransferProgress& progress);

}  // namespace gb
