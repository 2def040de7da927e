// SPDX-License-Identifier: Apache-2.0
#include "node/template_export.h"

#include <algorithm>
#include <vector>

#include <sys/stat.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "node/template_archive.h"
#include "node/zstd_stream.h"

namespace gb {
namespace {

// A seventh smaller than at the library's own level 3, in nearly four times the time; reading is as fast at
// every level.
constexpr int kLevel = 9;
constexpr std::size_t kPage = 4096;

struct Source {
    ArchiveMember member;
    UniqueFd fd;
};

struct Range {
    std::uint64_t from = 0, to = 0;
};

// The next part of the file that is no hole; empty at its end.
Result<Range> next_data(int fd, std::uint64_t from, std::uint64_t size) {
    const off_t data = ::lseek(fd, static_cast<off_t>(from), SEEK_DATA);
    if (data < 0 && errno == ENXIO) return Range{size, size};
    if (data < 0) return fail_errno("look for data");
    const off_t hole = ::lseek(fd, data, SEEK_HOLE);
    if (hole < 0) return fail_errno("look for a hole");
    return Range{static_cast<std::uint64_t>(data), std::min(static_cast<std::uint64_t>(hole), size)};
}

Result<Source> open_source(const StoredTemplate& stored, std::string_view name) {
    const std::filesystem::path path = stored.folder / name;
    Source out;
    GB_TRY_ASSIGN(out.fd, open_file(path, O_RDONLY));
    struct stat info{};
    if (::fstat(out.fd.get(), &info) != 0) return fail_errno("stat " + path.string());
    out.member = {std::string(name), static_cast<std::uint64_t>(info.st_size), 0};
    for (std::uint64_t at = 0; at < out.member.size;) {
        GB_TRY_ASSIGN(const Range data, next_data(out.fd.get(), at, out.member.size));
        out.member.data_bytes += data.to - data.from;
        at = data.to;
    }
    return out;
}

bool is_zero(std::string_view page) {
    return page.front() == 0 && page.substr(1) == page.substr(0, page.size() - 1);
}

// Leaves out the pages that are zeros anyway: `each` is called with the runs of others.
Status for_runs(std::string_view block,
                const std::function<Status(std::size_t at, std::string_view run)>& each) {
    for (std::size_t at = 0; at < block.size();) {
        std::size_t end = at;
        while (end < block.size() && !is_zero(block.substr(end, kPage)))
            end = std::min(block.size(), end + kPage);
        if (end > at) GB_TRY(each(at, block.substr(at, end - at)));
        at = std::min(block.size(), end + kPage);
    }
    return {};
}

class Exporter {
  public:
    Exporter(int out, const TransferProgress& progress, std::uint64_t total)
        : zstd_(kLevel, [this](std::string_view bytes) { return put(bytes); }),
          out_(out),
          progress_(progress),
          total_(total),
          block_(kLongestExtent, '\0') {}

    Status put(std::string_view bytes) {
        GB_TRY(write_all(out_, bytes));
        written_ += bytes.size();
        return {};
    }

    Status add(const Source& source, std::uint8_t number) {
        Sha256 hash;
        const int fd = source.fd.get();
        for (std::uint64_t at = 0; at < source.member.size;) {
            GB_TRY_ASSIGN(Range data, next_data(fd, at, source.member.size));
            for (; data.from < data.to;) {
                const std::size_t length = std::min<std::uint64_t>(block_.size(), data.to - data.from);
                const ssize_t n = ::pread(fd, block_.data(), length, static_cast<off_t>(data.from));
                if (n < 0 && errno == EINTR) continue;
                if (n < 0) return fail_errno("read " + source.member.name);
                if (n == 0) return fail(ErrorCode::aborted, source.member.name + " has become shorter");
                const std::string_view block(block_.data(), static_cast<std::size_t>(n));
                GB_TRY(for_runs(block, [&](std::size_t begin, std::string_view run) -> Status {
                    const std::string head =
                        extent_head(number, data.from + begin, static_cast<std::uint32_t>(run.size()));
                    hash.update(head);
                    hash.update(run);
                    GB_TRY(zstd_.write(head));
                    return zstd_.write(run);
                }));
                data.from += block.size();
                done_ += block.size();
                GB_TRY(progress_(source.member.name, done_, total_));
            }
            at = data.to;
        }
        return zstd_.write(member_end(number, hash.finish()));
    }

    Result<Exported> finish() {
        GB_TRY(zstd_.write(archive_end()));
        GB_TRY(zstd_.finish());
        return Exported{total_, written_};
    }

  private:
    ZstdWriter zstd_;
    int out_;
    const TransferProgress& progress_;
    std::uint64_t total_, done_ = 0, written_ = 0;
    std::string block_;
};

}  // namespace

Result<Exported> export_template(const StoredTemplate& stored, int out, const TransferProgress& progress) {
    const Manifest& m = stored.manifest;
    if (m.accelerator == engine::Accelerator::kvm && (!m.processor || m.tsc_khz == 0))
        return fail(
            ErrorCode::failed_precondition,
            fmt::format(
                "template '{0}' was prepared by an older version and does not say which processor it needs: "
                "`glovebox template prepare --force {0}` first",
                m.info.name));
    ArchiveHeader header{m, {}};
    std::vector<Source> sources;  // all open before the first is read: a newer build may remove them
    for (std::string_view name : kArchiveMembers) {
        auto source = open_source(stored, name);
        // Builds of older versions have no kernel of their own.
        if (!source && source.error().code == ErrorCode::not_found && name != "disk.img" &&
            name != "memory.img" && name != "state.bin")
            continue;
        if (!source) return std::unexpected(source.error());
        header.members.push_back(source->member);
        sources.push_back(*std::move(source));
    }
    Exporter exporter(out, progress, header.data_bytes());
    GB_TRY(exporter.put(write_archive_header(header)));
    for (std::size_t i = 0; i < sources.size(); ++i)
        GB_TRY(exporter.add(sources[i], static_cast<std::uint8_t>(i)));
    return exporter.finish();
}

}  // namespace gb
