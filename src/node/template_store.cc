// SPDX-License-Identifier: Apache-2.0
#include "node/template_store.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/file.h"
#include "base/log.h"

namespace gb {
namespace fs = std::filesystem;
namespace {

Result<StoredTemplate> read_build(const fs::path& folder) {
    GB_TRY_ASSIGN(std::string text, read_file(folder / "manifest.json"));
    GB_TRY_ASSIGN(Manifest manifest, parse_manifest(text));
    StoredTemplate out{std::move(manifest), folder};
    for (const fs::path& file : {out.disk(), out.memory(), out.state(), out.overlay()}) {
        std::error_code ec;
        if (!fs::is_regular_file(file, ec)) return fail(ErrorCode::data_loss, fmt::format("{} is missing", file.string()));
    }
    return out;
}

}  // namespace

bool is_build_id(std::string_view id) {
    return !id.empty() && std::ranges::all_of(
                              id, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

Result<std::vector<StoredTemplate>> TemplateStore::list() {
    std::lock_guard lock(mutex_);
    std::error_code ec;
    fs::file_time_type changed = fs::last_write_time(folder_, ec);
    if (ec) return std::vector<StoredTemplate>();  // nothing was prepared yet
    if (changed == read_at_) return templates_;
    std::vector<StoredTemplate> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_, ec)) {
        if (!entry.is_directory() || entry.path().filename().string().starts_with('.')) continue;
        auto build = read_build(entry.path());
        if (!build) {
            log::warn("a template cannot be used", {{"folder", entry.path().string()}, {"error", build.error().message}});
            continue;
        }
        found.push_back(*std::move(build));
    }
    std::ranges::sort(found, [](const StoredTemplate& a, const StoredTemplate& b) {
        return a.manifest.arrived_ms() > b.manifest.arrived_ms();
    });
    templates_.clear();
    for (StoredTemplate& build : found) {
        bool older = std::ranges::any_of(templates_, [&](const StoredTemplate& have) {
            return have.manifest.info.name == build.manifest.info.name;
        });
        if (!older) templates_.push_back(std::move(build));
    }
    read_at_ = changed;
    return templates_;
}

Result<StoredTemplate> TemplateStore::find(std::string_view id_or_name) {
    GB_TRY_ASSIGN(auto all, list());
    for (StoredTemplate& build : all)
        if (build.manifest.info.id == id_or_name || build.manifest.info.name == id_or_name) return std::move(build);
    return fail(ErrorCode::not_found, fmt::format("template '{}' not found", id_or_name));
}

Result<StoredTemplate> TemplateStore::find_build(std::string_view build_id) const {
    std::error_code ec;
    if (!is_build_id(build_id) || !fs::is_directory(folder_ / build_id, ec))
        return fail(ErrorCode::not_found, fmt::format("template build '{}' not found", build_id));
    return read_build(folder_ / build_id);
}

void remove_other_builds(const fs::path& folder, const TemplateInfo& keep) {
    std::error_code ec;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ec)) {
        if (entry.path().filename() == keep.build_id) continue;
        auto text = read_file(entry.path() / "manifest.json");
        auto manifest = text ? parse_manifest(*text) : Result<Manifest>(std::unexpected(text.error()));
        if (manifest && manifest->info.name == keep.name) (void)remove_tree(entry.path());
    }
}

}  // namespace gb
