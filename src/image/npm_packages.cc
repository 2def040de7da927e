// SPDX-License-Identifier: Apache-2.0
#include "image/npm_packages.h"

#include <fmt/format.h>

#include "base/file.h"

namespace gb::image {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kInputs[] = {"package.json", "package-lock.json"};

}  // namespace

Status fetch_npm_packages(const Layer& layer, const fs::path& folder, Reporter& reporter,
                          const Reporter::Span& span) {
    if (layer.npm.empty()) return {};
    GB_TRY(make_dirs(folder));
    for (std::string_view name : kInputs) {
        GB_TRY_ASSIGN(std::string text, read_file(layer.npm / name));
        GB_TRY(write_file_atomic(folder / name, text));
    }
    RunOptions options;
    options.cwd = folder.string();
    options.timeout = {std::chrono::minutes(20), std::chrono::hours(6)};  // it prints nothing
    auto done = reporter.run(span, {"npm", "ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund"},
                             options);
    if (done) return {};
    if (done.error().code == ErrorCode::not_found)
        return fail(
            ErrorCode::unavailable,
            fmt::format("npm packages of '{}' need npm on this machine: apt-get install npm", layer.name));
    return std::unexpected(done.error().with(fmt::format("npm packages of '{}'", layer.name)));
}

}  // namespace gb::image
