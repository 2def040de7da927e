// SPDX-License-Identifier: Apache-2.0
// Makes a template of an archive (template_archive.h).
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "node/template_export.h"
#include "node/template_fit.h"
#include "node/template_store.h"

namespace gb {

struct Imported {
    StoredTemplate stored;
    bool was_there = false;  // this build already
};

// Whether the template can be started where it is to be used.
struct ImportChecks {
    std::optional<HostFacts> host;  // none: nothing is asked, and builds that are there already stay
    // Tries the template's kernel under KVM, for that /dev/kvm opens proves nothing; called for templates of
    // KVM alone, with a build that is complete but has no place yet. May be empty.
    std::function<Status(const StoredTemplate&)> try_kvm = {};
};

// Reads an archive from a descriptor, which may be a pipe, to its end. The build appears in the folder of the
// store when all of it is there, on the disk, and every checksum was right; else nothing stays. It takes the
// place of other builds of its name and keeps their id. failed_precondition when a check fails, no_space,
// data_loss (damaged), invalid_argument (no archive). Blocks.
Result<Imported> import_template(int in, TemplateStore& store, const ImportChecks& checks,
                                 const TransferProgress& progress);

}  // namespace gb
