// SPDX-License-Identifier: Apache-2.0
// Makes templates: builds what a definition asks for, boots it, waits until it is ready, and freezes the running
// machine. Offline: needs no server, and may run beside one.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "image/progress.h"
#include "node/machinery.h"
#include "node/template_store.h"

namespace gb {

struct Prepared {
    StoredTemplate stored;
    bool reused = false;  // nothing had changed since the last time
};

enum class Reuse { when_unchanged, never };

class TemplateBuilder {
  public:
    explicit TemplateBuilder(NodeOptions options);
    ~TemplateBuilder();

    // Blocks: seconds when the root image is cached, minutes otherwise, and as long as something moves where the machine
    // is slow. What may have failed by the load of the host is tried once more. After a failure the images and the kernel
    // stay, and the next call goes on with the machine.
    Result<Prepared> prepare(const std::string& name, const image::ProgressFn& progress, Reuse reuse);

  private:
    struct Inputs;
    Result<Inputs> gather(const std::string& name, const image::ProgressFn& progress);
    Status capture(const Inputs& inputs, Manifest& manifest, const std::filesystem::path& folder,
                   const image::ProgressFn& progress);
    Status open();

    NodeOptions options_;
    TemplateStore store_;
    UniqueFd lock_;
    std::unique_ptr<Machinery> machinery_;
};

}  // namespace gb
