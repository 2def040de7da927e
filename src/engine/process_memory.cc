// SPDX-License-Identifier: Apache-2.0
#include "engine/process_memory.h"

#include <algorithm>
#include <charconv>

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"

namespace gb::engine {
namespace fs = std::filesystem;
namespace {

// Linux 6.7, linux/fs.h; the distribution's headers are older.
struct PagemapScan {
    std::uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted,
        category_mask, category_anyof_mask, return_mask;
};
struct PageRegion {
    std::uint64_t start, end, categories;
};
constexpr unsigned long kPagemapScan = _IOWR('f', 16, PagemapScan);
constexpr std::uint64_t kIsFile = 1 << 2, kIsPresent = 1 << 3, kIsSwapped = 1 << 4;

// proc_pid_pagemap(5)
constexpr std::uint64_t kEntryFileOrShared = 1ULL << 61, kEntrySwapped = 1ULL << 62,
                        kEntryPresent = 1ULL << 63;

constexpr std::size_t kBatchPages = 256;
constexpr std::size_t kMaxVectors = 1024;  // IOV_MAX

bool take_hex(std::string_view& text, char until, std::uint64_t& out) {
    auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), out, 16);
    if (bad != std::errc() || end == text.data() + text.size() || *end != until) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    return true;
}

// "7f0000000000-7f0020000000 rw-p 00000000 fe:00 1234  /vm/memory"
bool parse_line(std::string_view line, FileMapping& out, std::uint64_t& inode) {
    if (!take_hex(line, '-', out.start) || !take_hex(line, ' ', out.end)) return false;
    if (line.size() < 5 || line[4] != ' ') return false;
    out.is_private = line[3] == 'p';
    line.remove_prefix(5);
    std::uint64_t major = 0, minor = 0;
    if (!take_hex(line, ' ', out.offset) || !take_hex(line, ':', major) || !take_hex(line, ' ', minor))
        return false;
    auto [end, bad] = std::from_chars(line.data(), line.data() + line.size(), inode);
    return bad == std::errc() && out.start < out.end;
}

void add_run(std::vector<PageRun>& runs, std::uint64_t first, std::uint64_t count) {
    if (!runs.empty() && runs.back().first + runs.back().count == first) {
        runs.back().count += count;
    } else {
        runs.push_back({first, count});
    }
}

iovec remote_part(std::uint64_t address, std::size_t bytes) {
    return {reinterpret_cast<void*>(address), bytes};  // NOLINT: an address of the other process
}

const std::byte* zero_pages() {
    alignas(kPageBytes) static const std::byte zeroes[kBatchPages * kPageBytes] = {};
    return zeroes;
}

// Pairs of pieces of equal length, given to the kernel as many at a time as it takes.
class Copies {
  public:
    explicit Copies(pid_t pid) : pid_(pid) {}
    Status add(const std::byte* local, std::uint64_t remote, std::size_t bytes) {
        if (local_.size() == kMaxVectors) GB_TRY(flush());
        local_.push_back({const_cast<std::byte*>(local), bytes});
        remote_.push_back(remote_part(remote, bytes));
        total_ += bytes;
        return {};
    }
    Status flush() {
        if (local_.empty()) return {};
        const ssize_t n =
            ::process_vm_writev(pid_, local_.data(), local_.size(), remote_.data(), remote_.size(), 0);
        if (n < 0) return fail_errno("write a machine's memory");
        if (static_cast<std::size_t>(n) != total_)
            return fail(ErrorCode::aborted, "a machine's memory cannot be written as a whole");
        local_.clear();
        remote_.clear();
        total_ = 0;
        return {};
    }

  private:
    pid_t pid_;
    std::vector<iovec> local_, remote_;
    std::size_t total_ = 0;
};

}  // namespace

Result<std::vector<FileMapping>> parse_maps(std::string_view text) {
    std::vector<FileMapping> out;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        FileMapping mapping;
        std::uint64_t inode = 0;
        if (!parse_line(line, mapping, inode))
            return fail(ErrorCode::data_loss, fmt::format("not a line of maps: {}", line.substr(0, 100)));
        if (inode != 0) out.push_back(mapping);
    }
    return out;
}

Result<std::uint64_t> join_mapping(std::span<const FileMapping> pieces, std::uint64_t bytes) {
    if (pieces.empty()) return fail(ErrorCode::not_found, "the machine's memory image is not mapped");
    std::uint64_t covered = 0;
    for (const FileMapping& piece : pieces) {
        if (!piece.is_private || piece.offset != covered || piece.start != pieces[0].start + covered)
            return fail(ErrorCode::failed_precondition,
                        "the machine's memory is not one private mapping of its image");
        covered += piece.end - piece.start;
    }
    if (covered == bytes) return pieces[0].start;
    return fail(ErrorCode::failed_precondition,
                fmt::format("the machine maps {} bytes of its memory image and not {}", covered, bytes));
}

void add_private_pages(std::span<const std::uint64_t> entries, std::uint64_t first_page,
                       std::vector<PageRun>& runs) {
    for (std::size_t i = 0; i < entries.size(); ++i)
        if ((entries[i] & (kEntryPresent | kEntrySwapped)) != 0 && (entries[i] & kEntryFileOrShared) == 0)
            add_run(runs, first_page + i, 1);
}

Result<ProcessMemory> ProcessMemory::find(pid_t pid, const fs::path& image, std::uint64_t bytes) {
    struct stat wanted{};
    if (::stat(image.c_str(), &wanted) != 0) return fail_errno(fmt::format("stat {}", image.string()));
    GB_TRY_ASSIGN(std::string text, read_file(fmt::format("/proc/{}/maps", pid)));
    GB_TRY_ASSIGN(std::vector<FileMapping> mappings, parse_maps(text));
    // Device and inode in maps are not those of stat(2) on every file system; the link names the file itself.
    std::erase_if(mappings, [&](const FileMapping& mapping) {
        struct stat st{};
        const std::string link = fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, mapping.start, mapping.end);
        return ::stat(link.c_str(), &st) != 0 || st.st_dev != wanted.st_dev || st.st_ino != wanted.st_ino;
    });
    GB_TRY_ASSIGN(const std::uint64_t address, join_mapping(mappings, bytes));
    return ProcessMemory(pid, address, bytes);
}

Result<std::vector<PageRun>> ProcessMemory::private_pages() const {
    GB_TRY_ASSIGN(UniqueFd pagemap, open_file(fmt::format("/proc/{}/pagemap", pid_), O_RDONLY));
    auto runs = scan(pagemap.get());
    if (!runs && runs.error().code == ErrorCode::unimplemented) return private_pages_from_entries();
    return runs;
}

Result<std::vector<PageRun>> ProcessMemory::scan(int pagemap) const {
    std::vector<PageRun> runs;
    std::vector<PageRegion> regions(4096);
    PagemapScan scan{};
    scan.size = sizeof scan;
    scan.start = address_;
    scan.end = address_ + bytes_;
    scan.vec = reinterpret_cast<std::uintptr_t>(regions.data());
    scan.vec_len = regions.size();
    scan.category_inverted = kIsFile;
    scan.category_mask = kIsFile;
    scan.category_anyof_mask = kIsPresent | kIsSwapped;
    scan.return_mask = kIsFile;  // the same for all: neighbours become one region
    while (scan.start < scan.end) {
        const int found = ::ioctl(pagemap, kPagemapScan, &scan);
        if (found < 0 && errno == EINTR) continue;
        if (found < 0 && (errno == ENOTTY || errno == EINVAL))
            return fail(ErrorCode::unimplemented, "this kernel cannot scan a pagemap");
        if (found < 0) return fail_errno("scan a machine's pages");
        for (const PageRegion& region : std::span(regions).first(static_cast<std::size_t>(found)))
            add_run(runs, (region.start - address_) / kPageBytes, (region.end - region.start) / kPageBytes);
        // walk_end is not used: Linux 6.18 lets it stand before regions that it has reported already. A list
        // that is not full is the last one.
        if (static_cast<std::size_t>(found) < regions.size()) break;
        if (regions.back().end <= scan.start)
            return fail(ErrorCode::internal, "the scan of a machine's pages does not advance");
        scan.start = regions.back().end;
    }
    return runs;
}

Result<std::vector<PageRun>> ProcessMemory::private_pages_from_entries() const {
    GB_TRY_ASSIGN(UniqueFd pagemap, open_file(fmt::format("/proc/{}/pagemap", pid_), O_RDONLY));
    std::vector<PageRun> runs;
    std::vector<std::uint64_t> entries(32768);
    const std::uint64_t pages = bytes_ / kPageBytes;
    for (std::uint64_t page = 0; page < pages;) {
        const std::size_t wanted =
            std::min<std::uint64_t>(entries.size(), pages - page) * sizeof(std::uint64_t);
        const auto at = static_cast<off_t>((address_ / kPageBytes + page) * sizeof(std::uint64_t));
        const ssize_t n = ::pread(pagemap.get(), entries.data(), wanted, at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno("read a machine's pagemap");
        const std::size_t got = static_cast<std::size_t>(n) / sizeof(std::uint64_t);
        if (got == 0) return fail(ErrorCode::aborted, "a machine's pagemap ends too early");
        add_private_pages(std::span(entries).first(got), page, runs);
        page += got;
    }
    return runs;
}

Status ProcessMemory::read(std::span<const PageRun> runs, const Sink& sink) const {
    std::vector<std::byte> buffer(kBatchPages * kPageBytes);
    std::vector<PageRun> parts;
    std::vector<iovec> remote;
    std::size_t pages = 0;
    auto flush = [&]() -> Status {
        if (parts.empty()) return {};
        const iovec local{buffer.data(), pages * kPageBytes};
        const ssize_t n = ::process_vm_readv(pid_, &local, 1, remote.data(), remote.size(), 0);
        if (n < 0) return fail_errno("read a machine's memory");
        if (static_cast<std::size_t>(n) != local.iov_len)
            return fail(ErrorCode::aborted, "a machine's memory cannot be read as a whole");
        std::size_t at = 0;
        for (const PageRun& part : parts) {
            GB_TRY(sink(part.first, std::span(buffer).subspan(at, part.count * kPageBytes)));
            at += part.count * kPageBytes;
        }
        parts.clear();
        remote.clear();
        pages = 0;
        return {};
    };
    for (PageRun run : runs) {
        while (run.count > 0) {
            if (pages == kBatchPages || parts.size() == kMaxVectors) GB_TRY(flush());
            const std::uint64_t take = std::min<std::uint64_t>(run.count, kBatchPages - pages);
            parts.push_back({run.first, take});
            remote.push_back(remote_part(address_ + run.first * kPageBytes, take * kPageBytes));
            pages += take;
            run.first += take;
            run.count -= take;
        }
    }
    return flush();
}

Status ProcessMemory::write(const DeltaBlock& block) const {
    Copies copies(pid_);
    const std::byte* content = block.contents.data();
    for (const DeltaRun& run : block.runs) {
        std::uint64_t to = address_ + run.first_page * kPageBytes;
        std::size_t left = std::size_t{run.pages} * kPageBytes;
        if (run.first_page * kPageBytes > bytes_ || left > bytes_ - run.first_page * kPageBytes)
            return fail(ErrorCode::out_of_range, "pages beyond the end of the memory");
        if (run.kind == RunKind::data) {
            GB_TRY(copies.add(content, to, left));
            content += left;
            continue;
        }
        while (left > 0) {
            const std::size_t part = std::min(left, kBatchPages * kPageBytes);
            GB_TRY(copies.add(zero_pages(), to, part));
            to += part;
            left -= part;
        }
    }
    return copies.flush();
}

}  // namespace gb::engine
