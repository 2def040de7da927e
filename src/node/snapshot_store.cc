// SPDX-License-Identifier: Apache-2.0
#include "node/snapshot_store.h"

#include <cstdio>

#include <fmt/format.h>

#include "base/file.h"

namespace gb {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kUnfinished = ".new-";

std::unexpected<Error> no_such_snapshot(std::string_view build_id) {
    return fail(ErrorCode::not_found, fmt::format("snapshot '{}' not found", build_id));
}

Status check_file(const fs::path& file, std::uint64_t bytes) {
    std::error_code ec;
    if (fs::file_size(file, ec) == bytes && !ec) return {};
    return fail(ErrorCode::data_loss,
                fmt::format("{} of the snapshot is missing or damaged", file.filename().string()));
}

}  // namespace

Status SnapshotStore::open() {
    GB_TRY(make_dirs(folder_, 0711));
    std::error_code ec;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_, ec))
        if (entry.path().filename().string().starts_with(kUnfinished)) GB_TRY(remove_tree(entry.path()));
    return ec ? Status(fail_errno(ec.value(), "read " + folder_.string())) : Status();
}

Status SnapshotStore::add(const std::string& build_id, Keep keep, const Fill& fill) const {
    if (!is_build_id(build_id)) return fail(ErrorCode::invalid_argument, "not a build's id: " + build_id);
    const fs::path unfinished = folder_ / (std::string(kUnfinished) + build_id);
    auto make = [&]() -> Status {
        GB_TRY(make_dirs(unfinished, 0711));
        GB_TRY_ASSIGN(const Manifest manifest, fill(unfinished));
        GB_TRY(write_file_atomic(unfinished / "manifest.json", write_manifest(manifest), 0600));
        if (keep == Keep::durable) GB_TRY(sync_path(unfinished));
        if (std::rename(unfinished.c_str(), (folder_ / build_id).c_str()) != 0)
            return fail_errno(fmt::format("rename to {}", (folder_ / build_id).string()));
        return keep == Keep::durable ? sync_path(folder_) : Status();
    };
    Status made = make();
    if (!made) (void)remove_tree(unfinished);
    return made;
}

Result<StoredTemplate> SnapshotStore::find(std::string_view build_id) const {
    std::error_code ec;
    const fs::path folder = folder_ / build_id;
    if (!is_build_id(build_id) || !fs::is_directory(folder, ec)) return no_such_snapshot(build_id);
    GB_TRY_ASSIGN(const std::string text, read_file(folder / "manifest.json"));
    GB_TRY_ASSIGN(Manifest manifest, parse_manifest(text));
    if (manifest.info.build_id != build_id || manifest.boots == manifest.saved.has_value())
        return fail(ErrorCode::data_loss, "the manifest is not of this snapshot");
    StoredTemplate out{std::move(manifest), folder};
    if (out.manifest.saved) {
        GB_TRY(check_file(out.state(), out.manifest.saved->state_bytes));
        GB_TRY(check_file(out.delta(), out.manifest.saved->memory_bytes));
    }
    if (!fs::is_regular_file(out.overlay(), ec))
        return fail(ErrorCode::data_loss, "the snapshot's disk is missing");
    if (fs::is_regular_file(out.memory(), ec) && fs::is_regular_file(out.disk(), ec)) return out;
    auto base = templates_.find_build(out.manifest.image_id());
    if (!base)
        return fail(ErrorCode::data_loss,
                    fmt::format("the template build that snapshot '{}' is of is gone", build_id));
    out.base = base->folder;
    return out;
}

Status SnapshotStore::remove(std::string_view build_id) const {
    if (!is_build_id(build_id)) return {};
    const fs::path folder = folder_ / build_id;
    const fs::path unfinished = folder_ / (std::string(kUnfinished) + std::string(build_id));
    // Away first: half a snapshot must not be found under its name.
    if (std::rename(folder.c_str(), unfinished.c_str()) != 0) {
        if (errno == ENOENT) return {};
        GB_TRY(remove_tree(folder));
        return {};
    }
    return remove_tree(unfinished);
}

Result<std::vector<std::string>> SnapshotStore::list() const {
    std::vector<std::string> out;
    std::error_code ec;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_, ec))
        if (is_build_id(entry.path().filename().string())) out.push_back(entry.path().filename());
    if (ec) return fail_errno(ec.value(), "read " + folder_.string());
    return out;
}

}  // namespace gb
