// SPDX-License-Identifier: Apache-2.0
// The npm packages of a template definition: fetched on the host, with the host's npm and its settings.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "image/definition.h"
#include "image/reporter.h"

namespace gb::image {

// Installs exactly what the layer's package-lock.json names into `<folder>/node_modules`. Scripts of packages
// are not run: they would run here, as root. unavailable when the host has no npm.
Status fetch_npm_packages(const Layer& layer, const std::filesystem::path& folder, Reporter& reporter,
                          const Reporter::Span& span);

}  // namespace gb::image
