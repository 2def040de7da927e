// SPDX-License-Identifier: Apache-2.0
#include "node/template_import.h"

#include <array>
#include <vector>

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/units.h"
#include "engine/microvm/overlay.h"
#include "node/template_archive.h"
#include "node/zstd_stream.h"

namespace gb {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = ".import-";

Result<std::string_view> read_some(int fd, std::span<char> buffer,
                                   const std::function<Status()>& interrupted) {
    for (;;) {
        const ssize_t n = ::read(fd, buffer.data(), buffer.size());
        if (n >= 0) return std::string_view(buffer.data(), static_cast<std::size_t>(n));
        if (errno != EINTR) return fail_errno("read the archive");
        GB_TRY(interrupted());
    }
}

Result<std::string> read_exactly(int fd, std::size_t size, const std::function<Status()>& interrupted) {
    std::string out(size, '\0');
    for (std::size_t have = 0; have < size;) {
        GB_TRY_ASSIGN(const std::string_view piece, read_some(fd, std::span(out).subspan(have), interrupted));
        if (piece.empty()) {
            out.resize(have);
            break;
        }
        have += piece.size();
    }
    return out;
}

std::unexpected<Error> cut_short() {
    return fail(ErrorCode::data_loss, "the archive is not complete: get or export it again");
}

// A folder below the store's, locked as long as its owner lives; what owners left that were killed is
// removed.
class ImportFolder {
  public:
    static Result<ImportFolder> make(const fs::path& parent, const std::string& build_id) {
        GB_TRY(make_dirs(parent));
        remove_abandoned(parent);
        ImportFolder out;
        out.path_ = parent / fmt::format("{}{}-{}", kPrefix, build_id, random_id(8));
        GB_TRY(make_dirs(out.path_));
        GB_TRY_ASSIGN(out.lock_, open_file(out.path_, O_RDONLY | O_DIRECTORY));
        if (::flock(out.lock_.get(), LOCK_EX | LOCK_NB) != 0) return fail_errno("lock " + out.path_.string());
        return out;
    }
    ImportFolder(ImportFolder&&) = default;
    ImportFolder& operator=(ImportFolder&&) = delete;
    ~ImportFolder() {
        if (lock_) (void)remove_tree(path_);  // nothing when it was renamed
    }
    [[nodiscard]] const fs::path& path() const { return path_; }

  private:
    ImportFolder() = default;
    static void remove_abandoned(const fs::path& parent) {
        std::error_code ec;
        for (const fs::directory_entry& entry : fs::directory_iterator(parent, ec)) {
            if (!entry.path().filename().string().starts_with(kPrefix)) continue;
            auto fd = open_file(entry.path(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
            if (fd && ::flock(fd->get(), LOCK_EX | LOCK_NB) == 0) (void)remove_tree(entry.path());
        }
    }
    fs::path path_;
    UniqueFd lock_;
};

Status check_space(const fs::path& folder, const ArchiveHeader& header) {
    constexpr std::uint64_t kBeside =
        16 * kMib;  // overlay, manifest, and what a file system needs for itself
    struct statvfs st{};
    if (::statvfs(folder.c_str(), &st) != 0) return fail_errno("look at the space of " + folder.string());
    const std::uint64_t free_bytes = std::uint64_t{st.f_bavail} * st.f_frsize,
                        needed = header.data_bytes() + kBeside;
    if (free_bytes >= needed) return {};
    return fail(
        ErrorCode::no_space,
        fmt::format(
            "template '{}' needs {} MiB in {}, where {} MiB are free: make room, or name another folder "
            "with --templates-dir",
            header.manifest.info.name, needed / kMib, folder.string(), free_bytes / kMib));
}

// Writes the members' files, each synced when it is complete.
class Files : public ArchiveReader::Sink {
  public:
    Files(const ArchiveHeader& header, const fs::path& folder, const TransferProgress& progress)
        : header_(header), progress_(progress), total_(header.data_bytes()) {
        for (const ArchiveMember& member : header.members) paths_.push_back(folder / member.name);
    }

    Status write(std::size_t member, std::uint64_t offset, std::string_view bytes) override {
        if (!file_) GB_TRY(open(member));
        done_ += bytes.size();
        while (!bytes.empty()) {
            const ssize_t n = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return fail_errno("write " + paths_[member].string());
            offset += static_cast<std::uint64_t>(n);
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
        return progress_(header_.members[member].name, done_, total_);
    }

    Status complete(std::size_t member) override {
        if (!file_) GB_TRY(open(member));  // a hole from its begin to its end
        GB_TRY(progress_("write to the disk", done_, total_));
        // As the builder leaves them: machines may read these, nobody writes.
        if (::fchmod(file_.get(), 0444) != 0 || ::fsync(file_.get()) != 0)
            return fail_errno("write " + paths_[member].string());
        file_.reset();
        return {};
    }

  private:
    Status open(std::size_t member) {
        GB_TRY_ASSIGN(file_, open_file(paths_[member], O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW));
        if (::ftruncate(file_.get(), static_cast<off_t>(header_.members[member].size)) != 0)
            return fail_errno("write " + paths_[member].string());
        return {};
    }
    const ArchiveHeader& header_;
    const TransferProgress& progress_;
    std::uint64_t done_ = 0, total_;
    std::vector<fs::path> paths_;
    UniqueFd file_;
};

Result<ArchiveHeader> read_header(int in, const std::function<Status()>& interrupted) {
    GB_TRY_ASSIGN(const std::string prefix_bytes, read_exactly(in, kArchivePrefixBytes, interrupted));
    GB_TRY_ASSIGN(const ArchivePrefix prefix, parse_archive_prefix(prefix_bytes));
    GB_TRY_ASSIGN(const std::string text, read_exactly(in, prefix.header_bytes, interrupted));
    if (text.size() < prefix.header_bytes) return cut_short();
    return parse_archive_header(prefix, text);
}

Status read_members(int in, const ArchiveHeader& header, Files& files,
                    const std::function<Status()>& interrupted) {
    ArchiveReader records(header, files);
    ZstdReader zstd([&](std::string_view bytes) { return records.feed(bytes); });
    std::vector<char> buffer(256 * 1024);
    for (;;) {
        GB_TRY_ASSIGN(const std::string_view piece, read_some(in, buffer, interrupted));
        if (piece.empty()) break;
        if (Status fed = zstd.feed(piece); !fed) {
            if (fed.error().code == ErrorCode::data_loss && !fed.error().message.starts_with("the archive"))
                return std::unexpected(fed.error().with("the archive is damaged, get or export it again"));
            return fed;
        }
    }
    if (!zstd.complete() || !records.complete()) return cut_short();
    return {};
}

// Whoever writes into the pipe shall not fail because nobody wants to read on.
Status drain(int in, const std::function<Status()>& interrupted) {
    std::vector<char> buffer(256 * 1024);
    for (;;) {
        GB_TRY_ASSIGN(const std::string_view piece, read_some(in, buffer, interrupted));
        if (piece.empty()) return {};
    }
}

// A name keeps its id over builds, and no two names have one.
Status settle_id(TemplateInfo& info, TemplateStore& store) {
    GB_TRY_ASSIGN(const auto builds, store.list());
    for (const StoredTemplate& have : builds)
        if (have.manifest.info.name != info.name && have.manifest.info.id == info.id) info.id = template_id();
    for (const StoredTemplate& have : builds)
        if (have.manifest.info.name == info.name) info.id = have.manifest.info.id;
    return {};
}

}  // namespace

Result<Imported> import_template(int in, TemplateStore& store, const ImportChecks& checks,
                                 const TransferProgress& progress) {
    const std::function<Status()> interrupted = [&] { return progress("read", 0, 0); };
    GB_TRY_ASSIGN(ArchiveHeader header, read_header(in, interrupted));
    Manifest& manifest = header.manifest;
    if (checks.host) GB_TRY(check_fit(manifest, *checks.host));
    if (auto have = store.find_build(manifest.info.build_id)) {
        GB_TRY(drain(in, interrupted));
        return Imported{*std::move(have), true};
    }
    GB_TRY_ASSIGN(const ImportFolder folder, ImportFolder::make(store.folder(), manifest.info.build_id));
    GB_TRY(check_space(folder.path(), header));
    Files files(header, folder.path(), progress);
    GB_TRY(read_members(in, header, files, interrupted));

    StoredTemplate made{manifest, folder.path()};
    if (checks.host && checks.try_kvm && manifest.accelerator == engine::Accelerator::kvm)
        GB_TRY(checks.try_kvm(made));
    std::uint64_t disk_bytes = 0;
    for (const ArchiveMember& member : header.members)
        if (member.name == "disk.img") disk_bytes = member.size;
    GB_TRY(engine::make_empty_overlay(made.overlay(), disk_bytes));
    GB_TRY(settle_id(made.manifest.info, store));
    made.manifest.imported_ms = now_ms();
    GB_TRY(write_file_atomic(folder.path() / "manifest.json", write_manifest(made.manifest)));
    GB_TRY(sync_path(folder.path()));
    made.folder = store.folder() / manifest.info.build_id;
    if (::rename(folder.path().c_str(), made.folder.c_str()) != 0) {
        // Another import of the same was quicker.
        if (errno == EEXIST || errno == ENOTEMPTY)
            if (auto have = store.find_build(manifest.info.build_id)) return Imported{*std::move(have), true};
        return fail_errno("rename to " + made.folder.string());
    }
    GB_TRY(sync_path(store.folder()));
    if (checks.host) remove_other_builds(store.folder(), made.manifest.info);
    return Imported{std::move(made), false};
}

}  // namespace gb
