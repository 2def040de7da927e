// SPDX-License-Identifier: Apache-2.0
// The captured templates on this machine: <folder>/<build id>/{disk.img,memory.img,state.bin,overlay.qcow2,
// manifest.json}. A build folder appears whole by a rename and is never changed; of builds of the same name new sandboxes
// use the one that came last, whether it was made here or imported.
#pragma once

#include <filesystem>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/manifest.h"

namespace gb {

struct StoredTemplate {
    Manifest manifest;
    std::filesystem::path folder;
    std::filesystem::path base = {};  // where the files are that it shares with its template; empty: in the folder

    [[nodiscard]] std::filesystem::path state() const { return folder / "state.bin"; }
    [[nodiscard]] std::filesystem::path overlay() const { return folder / "overlay.qcow2"; }
    [[nodiscard]] std::filesystem::path delta() const { return folder / "memory.delta"; }  // of a snapshot
    [[nodiscard]] std::filesystem::path disk() const { return shared("disk.img"); }
    [[nodiscard]] std::filesystem::path memory() const { return shared("memory.img"); }
    // To boot from the disk again. Builds of older versions do not have them.
    [[nodiscard]] std::filesystem::path kernel() const { return shared("vmlinuz"); }
    [[nodiscard]] std::filesystem::path initrd() const { return shared("initrd.img"); }

  private:
    [[nodiscard]] std::filesystem::path shared(const char* file) const { return (base.empty() ? folder : base) / file; }
};

// Names of folders too: small letters, digits and '-'.
bool is_build_id(std::string_view id);

// Removes the other builds of the name. Machines that still run from one keep its files open.
void remove_other_builds(const std::filesystem::path& folder, const TemplateInfo& keep);

class TemplateStore {
  public:
    explicit TemplateStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

    // The latest build of each name. Reads the folder again when it changed. A folder that cannot be read is logged
    // and left out.
    Result<std::vector<StoredTemplate>> list();
    // By id or name; not_found.
    Result<StoredTemplate> find(std::string_view id_or_name);
    // One build, whether or not there is a later one; not_found. Looks at the disk.
    [[nodiscard]] Result<StoredTemplate> find_build(std::string_view build_id) const;

    [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

  private:
    std::filesystem::path folder_;
    std::mutex mutex_;
    std::filesystem::file_time_type read_at_{};
    std::vector<StoredTemplate> templates_;
};

}  // namespace gb
