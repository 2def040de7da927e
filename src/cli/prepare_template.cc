// SPDX-License-Identifier: Apache-2.0
#include "cli/prepare_template.h"

#include "cli/progress.h"

namespace gb::cli {

Result<Prepared> prepare_template(TemplateBuilder& builder, const std::string& name, Reuse reuse) {
    ProgressLine line("template " + name);
    return builder.prepare(
        name, [&](const image::Progress& p) { line.update(p.fraction, p.step, p.detail); }, reuse);
}

}  // namespace gb::cli
