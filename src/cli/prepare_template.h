// SPDX-License-Identifier: Apache-2.0
// Building a template with its progress on standard error.
#pragma once

#include <string>

#include "base/result.h"
#include "node/template_builder.h"

namespace gb::cli {

Result<Prepared> prepare_template(TemplateBuilder& builder, const std::string& name, Reuse reuse);

}  // namespace gb::cli
