// SPDX-License-Identifier: Apache-2.0
// Snapshots of sandboxes on this machine: <folder>/<build
// id>/{overlay.qcow2,state.bin,memory.delta,manifest.json} and links to the files of the template's build
// that the sandbox ran on. A folder appears whole by a rename and is never changed. Where there are no links,
// because templates are on another file system, that build must stay.
//
// A copy holds what differs from the template's image, also of a sandbox that was itself started from a
// snapshot: there are no chains, and removing a snapshot takes nothing from others.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/template_store.h"

namespace gb {

class SnapshotStore {
  public:
    SnapshotStore(std::filesystem::path folder, const TemplateStore& templates)
        : folder_(std::move(folder)), templates_(templates) {}

    // Makes the folder, and removes what was never finished.
    Status open();

    // `fill` copies a machine into the folder that it is given and answers its manifest. On an error nothing
    // is left.
    using Fill = std::function<Result<Manifest>(const std::filesystem::path&)>;
    using Keep = SnapshotSpec::Keep;
    Status add(const std::string& build_id, Keep keep, const Fill& fill) const;

    // not_found; data_loss when a file of it is missing or not of its size.
    [[nodiscard]] Result<StoredTemplate> find(std::string_view build_id) const;
    [[nodiscard]] Status remove(std::string_view build_id) const;  // missing is success
    [[nodiscard]] Result<std::vector<std::string>> list() const;   // build ids

  private:
    std::filesystem::path folder_;
    const TemplateStore& templates_;
};

}  // namespace gb
