// SPDX-License-Identifier: Apache-2.0
// What a captured template is, as its manifest.json says. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/processor.h"
#include "node/node.h"

namespace gb {

// What was saved of a machine beside its memory image, and how it is known to be whole.
struct SavedMemory {
    std::uint64_t state_bytes = 0;
    std::string state_sha256;
    std::uint64_t memory_bytes = 0;  // of the delta
    std::uint32_t memory_checksum = 0;
};

struct Manifest {
    TemplateInfo info;
    // Hash of all that went into the capture: root image, kernel, programs of ours, sizes, engine. Another one means
    // that the template must be made again.
    std::string key;
    std::string vmm_id;  // of the VMM root; a capture is loaded by the same VMM that made it
    std::string vmm_version;
    engine::Accelerator accelerator = engine::Accelerator::tcg;
    std::string accelerator_reason;  // for people
    // Under KVM: the processor that it was captured on, and the speed of its time stamp counter. Builds of older versions
    // do not say.
    std::optional<engine::Processor> processor;
    unsigned tsc_khz = 0;
    std::string guest_kernel;
    std::string command_line;
    std::string start_cmd;  // what runs in it from the start; empty: nothing
    std::string default_user;
    std::string workdir;
    std::map<std::string, std::string> env;
    // Of the snapshot of a sandbox: it has no image of its own, but what was written over one.
    std::string image_build;  // the build that image belongs to; empty: this one
    std::optional<SavedMemory> saved;
    bool boots = false;  // nothing was saved but its disk
    std::int64_t imported_ms = 0;  // when it came from another machine; 0: it was made here

    // When it came to this machine. Of two builds of a name the later one counts.
    [[nodiscard]] std::int64_t arrived_ms() const { return imported_ms != 0 ? imported_ms : info.created_ms; }

    // What names the bytes of the memory image.
    [[nodiscard]] const std::string& image_id() const { return image_build.empty() ? info.build_id : image_build; }
};

std::string write_manifest(const Manifest& manifest);
// failed_precondition when it is of another format version, data_loss when it cannot be read.
Result<Manifest> parse_manifest(std::string_view text);

}  // namespace gb
