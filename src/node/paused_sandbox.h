// SPDX-License-Identifier: Apache-2.0
// A paused sandbox as files: what its folder holds, and what its manifest says of them.
//
//   sandboxes/<id>/disk.qcow2     its disk, the one it runs on too
//                  state.bin      devices and processors   } of a pause with memory
//                  memory.delta   the pages it has written }
//                  paused.json    written last, removed first: with it the sandbox is paused
//                  base/          links to the files of its template's build, which may be replaced meanwhile
//                  egress.log     its decision log
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "node/manifest.h"
#include "node/node.h"

namespace gb {

// Names only; nothing is looked at.
class SandboxFolder {
  public:
    explicit SandboxFolder(std::filesystem::path path) : path_(std::move(path)) {}
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] std::filesystem::path disk() const { return path_ / "disk.qcow2"; }
    [[nodiscard]] std::filesystem::path state() const { return path_ / "state.bin"; }
    [[nodiscard]] std::filesystem::path memory() const { return path_ / "memory.delta"; }
    [[nodiscard]] std::filesystem::path manifest() const { return path_ / "paused.json"; }
    [[nodiscard]] std::filesystem::path base() const { return path_ / "base"; }
    // Its certificate authority with the key, while it has header rules (egress/certificate_authority.h).
    [[nodiscard]] std::filesystem::path authority() const { return path_ / "egress-ca.pem"; }
    [[nodiscard]] std::filesystem::path log() const { return path_ / "egress.log"; }
    // Of one that runs: its record (machine_record.h) and QEMU's monitor.
    [[nodiscard]] std::filesystem::path machine() const { return path_ / "machine.json"; }
    [[nodiscard]] std::filesystem::path monitor() const { return path_ / "monitor"; }

  private:
    std::filesystem::path path_;
};

// Where the files of the template's build are that the sandbox runs on: its own links, which stay as long as it does, or
// else `build`.
std::filesystem::path base_of(const SandboxFolder& folder, const std::filesystem::path& build);

// A disk that was written since is not the one that the saved memory knows.
struct DiskMark {
    std::uint64_t bytes = 0;
    std::int64_t written_ns = 0;  // its time of modification, since 1970
    bool operator==(const DiskMark&) const = default;
};
Result<DiskMark> mark_of(const std::filesystem::path& disk);

struct PausedSandbox {
    std::string id;
    PauseMode mode = PauseMode::with_memory;
    std::int64_t paused_ms = 0;
    Manifest from;  // the template's build that it runs on, as it was
    DiskMark disk;
    SavedMemory saved;  // of a pause with memory
};

std::string write_paused(const PausedSandbox& paused);
// failed_precondition when it is of another format version, data_loss when it cannot be read.
Result<PausedSandbox> parse_paused(std::string_view text);

// The paused sandbox in a folder, its files looked at from outside: there, of the sizes they were saved with,
// and, when there is memory that knows it, the disk not written since. not_found: it is not paused; aborted:
// it has run on since; data_loss: it is damaged.
Result<PausedSandbox> read_paused(const SandboxFolder& folder);

// Makes the sandbox a paused one, durably. The other files are synced already.
Status put_paused(const SandboxFolder& folder, const PausedSandbox& paused);
// Makes it none any more, durably; missing is success.
Status remove_manifest(const SandboxFolder& folder);
// The same, then removes what was saved of its memory. Missing files are success.
Status remove_paused(const SandboxFolder& folder);

// Names of sandboxes are names of folders: letters and digits, '-' and '_', at most 64.
bool is_sandbox_name(std::string_view id);

}  // namespace gb
