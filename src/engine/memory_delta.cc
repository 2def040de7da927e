// SPDX-License-Identifier: Apache-2.0
#include "engine/memory_delta.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <sys/uio.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/ids.h"

namespace gb::engine {
namespace fs = std::filesystem;
namespace {

static_assert(std::endian::native == std::endian::little, "the format is written as it lies in memory");

struct Header {
    std::array<char, 8> magic;
    std::uint32_t version;
    std::uint32_t page_bytes;
    std::uint64_t image_bytes;
    std::array<char, 32> image_id;
    std::uint32_t reserved;
    std::uint32_t checksum;  // of all before
};
static_assert(sizeof(Header) == 64);

// The end has the same length as the head of a block, so that one read decides.
struct BlockHead {
    std::array<char, 4> magic;
    std::uint32_t runs;
    std::uint32_t content_pages;
    std::uint32_t reserved;
    std::uint64_t reserved2;
    std::uint32_t reserved3;
    std::uint32_t checksum;  // of all before, the runs and the contents
};
struct End {
    std::array<char, 4> magic;
    std::uint32_t blocks;
    std::uint64_t data_pages;
    std::uint64_t zero_pages;
    std::uint32_t reserved;
    std::uint32_t checksum;  // of all before, behind the checksums of the blocks
};
static_assert(sizeof(BlockHead) == 32 && sizeof(End) == 32 && sizeof(DeltaRun) == 16);

constexpr std::array<char, 8> kDeltaMagic{'G', 'B', 'X', 'D', 'E', 'L', 'T', 'A'};
constexpr std::array<char, 4> kBlockMagic{'B', 'L', 'C', 'K'};
constexpr std::array<char, 4> kEndMagic{'D', 'E', 'N', 'D'};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

template <class T>
std::span<const std::byte> before_checksum(const T& value) {
    return bytes_of(value).first(offsetof(T, checksum));
}

template <class T>
T from_bytes(std::span<const std::byte> data) {
    T out;
    std::memcpy(&out, data.data(), sizeof out);
    return out;
}

std::unexpected<Error> damaged(std::string_view what) {
    return fail(ErrorCode::data_loss, fmt::format("the saved memory is damaged: {}", what));
}

bool all_zero(std::span<const std::byte> page) {
    return page[0] == std::byte{0} && std::memcmp(page.data(), page.data() + 1, page.size() - 1) == 0;
}

std::array<char, 32> hash_of(const MemoryBase& base) {
    std::array<char, 32> out{};
    const std::string hash = sha256(base.id);
    std::ranges::copy(hash, out.begin());
    return out;
}

std::uint32_t checksum_of(const BlockHead& head, std::span<const DeltaRun> runs,
                          std::span<const std::byte> contents) {
    return crc32c(contents, crc32c(std::as_bytes(runs), crc32c(before_checksum(head))));
}

Status check_base(const MemoryBase& base) {
    if (!base.id.empty() && base.bytes > 0 && base.bytes % kPageBytes == 0) return {};
    return fail(ErrorCode::invalid_argument, "a memory image needs an id and whole pages");
}

}  // namespace

DeltaWriter::DeltaWriter(fs::path path, fs::path temporary, UniqueFd fd, std::uint64_t pages)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)), image_pages_(pages) {
    contents_.reserve(kDeltaBlockPages * kPageBytes);
}

DeltaWriter::DeltaWriter(DeltaWriter&& other) noexcept = default;

DeltaWriter::~DeltaWriter() {
    if (fd_ && !temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<DeltaWriter> DeltaWriter::create(const fs::path& path, const MemoryBase& base) {
    GB_TRY(check_base(base));
    fs::path temporary = path;
    temporary += ".tmp-" + random_id(8);
    GB_TRY_ASSIGN(UniqueFd fd, open_file(temporary, O_WRONLY | O_CREAT | O_EXCL));
    DeltaWriter out(path, std::move(temporary), std::move(fd), base.bytes / kPageBytes);
    Header header{kDeltaMagic, kDeltaVersion, kPageBytes, base.bytes, hash_of(base), 0, 0};
    header.checksum = crc32c(before_checksum(header));
    GB_TRY(out.write(bytes_of(header)));
    return out;
}

Status DeltaWriter::write(std::span<const std::byte> data) {
    if (auto written = write_all(fd_.get(), {reinterpret_cast<const char*>(data.data()), data.size()});
        !written)
        return std::unexpected(written.error().with(temporary_.string()));
    stats_.bytes += data.size();
    return {};
}

void DeltaWriter::extend(std::uint64_t page, RunKind kind) {
    if (!runs_.empty()) {
        DeltaRun& last = runs_.back();
        if (last.kind == kind && last.first_page + last.pages == page) {
            ++last.pages;
            return;
        }
    }
    runs_.push_back({page, 1, kind});
}

Status DeltaWriter::add(std::uint64_t first_page, std::span<const std::byte> contents) {
    const std::uint64_t count = contents.size() / kPageBytes;
    if (finished_ || contents.size() % kPageBytes != 0 || first_page < next_page_ ||
        first_page > image_pages_ || count > image_pages_ - first_page)
        return fail(ErrorCode::invalid_argument, fmt::format("pages {} to {} cannot be added to a delta here",
                                                             first_page, first_page + count));
    next_page_ = first_page + count;
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto page = contents.subspan(i * kPageBytes, kPageBytes);
        const RunKind kind = all_zero(page) ? RunKind::zero : RunKind::data;
        if (runs_.size() == kDeltaBlockRuns || contents_.size() == kDeltaBlockPages * kPageBytes)
            GB_TRY(flush());
        extend(first_page + i, kind);
        if (kind == RunKind::data) contents_.insert(contents_.end(), page.begin(), page.end());
        ++(kind == RunKind::data ? stats_.data_pages : stats_.zero_pages);
    }
    return {};
}

Status DeltaWriter::flush() {
    if (runs_.empty()) return {};
    BlockHead head{kBlockMagic,
                   static_cast<std::uint32_t>(runs_.size()),
                   static_cast<std::uint32_t>(contents_.size() / kPageBytes),
                   0,
                   0,
                   0,
                   0};
    head.checksum = checksum_of(head, runs_, contents_);
    GB_TRY(write(bytes_of(head)));
    GB_TRY(write(std::as_bytes(std::span(runs_))));
    GB_TRY(write(contents_));
    stats_.checksum = crc32c(bytes_of(head.checksum), stats_.checksum);
    ++blocks_;
    runs_.clear();
    contents_.clear();
    return {};
}

Result<DeltaStats> DeltaWriter::finish() {
    if (finished_) return fail(ErrorCode::failed_precondition, "the delta is finished already");
    GB_TRY(flush());
    End end{kEndMagic, static_cast<std::uint32_t>(blocks_), stats_.data_pages, stats_.zero_pages, 0, 0};
    end.checksum = crc32c(before_checksum(end), stats_.checksum);
    GB_TRY(write(bytes_of(end)));
    stats_.checksum = end.checksum;
    finished_ = true;
    return stats_;
}

Status DeltaWriter::publish(Sync sync) {
    if (!finished_) return fail(ErrorCode::failed_precondition, "the delta has no end yet");
    if (sync == Sync::yes && ::fsync(fd_.get()) != 0) return fail_errno(fmt::format("fsync {}", temporary_.string()));
    if (::rename(temporary_.c_str(), path_.c_str()) != 0)
        return fail_errno(fmt::format("rename to {}", path_.string()));
    temporary_.clear();
    if (sync == Sync::no) return {};
    GB_TRY_ASSIGN(
        UniqueFd folder,
        open_file(path_.parent_path().empty() ? fs::path(".") : path_.parent_path(), O_RDONLY | O_DIRECTORY));
    if (::fsync(folder.get()) != 0) return fail_errno(fmt::format("fsync {}", path_.parent_path().string()));
    return {};
}

Result<DeltaReader> DeltaReader::open(const fs::path& path, const MemoryBase& base) {
    GB_TRY_ASSIGN(UniqueFd opened, open_file(path, O_RDONLY));
    (void)::posix_fadvise(opened.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    auto fd = std::make_shared<UniqueFd>(std::move(opened));
    return from(
        [fd, path](std::span<std::byte> buffer) -> Result<std::size_t> {
            std::size_t got = 0;
            while (got < buffer.size()) {
                const ssize_t n = ::read(fd->get(), buffer.data() + got, buffer.size() - got);
                if (n < 0 && errno == EINTR) continue;
                if (n < 0) return fail_errno(fmt::format("read {}", path.string()));
                if (n == 0) break;
                got += static_cast<std::size_t>(n);
            }
            return got;
        },
        base);
}

Result<DeltaReader> DeltaReader::from(Source source, const MemoryBase& base) {
    GB_TRY(check_base(base));
    DeltaReader out(std::move(source), base.bytes / kPageBytes);
    GB_TRY(out.read_header(base));
    return out;
}

Status DeltaReader::read_exactly(std::span<std::byte> buffer) {
    if (buffer.empty()) return {};
    GB_TRY_ASSIGN(const std::size_t got, source_(buffer));
    stats_.bytes += got;
    return got == buffer.size() ? Status() : damaged("the file ends too early");
}

Status DeltaReader::read_header(const MemoryBase& base) {
    std::array<std::byte, sizeof(Header)> bytes{};
    GB_TRY(read_exactly(bytes));
    const auto header = from_bytes<Header>(bytes);
    if (header.magic != kDeltaMagic) return damaged("it is no memory delta");
    if (header.version != kDeltaVersion)
        return fail(ErrorCode::data_loss,
                    fmt::format("the saved memory has version {}, this program reads {}", header.version,
                                kDeltaVersion));
    if (header.checksum != crc32c(before_checksum(header))) return damaged("its header");
    if (header.page_bytes != kPageBytes || header.reserved != 0) return damaged("its page size");
    if (header.image_bytes != base.bytes || header.image_id != hash_of(base))
        return fail(ErrorCode::failed_precondition,
                    fmt::format("the saved memory belongs to another memory image than {}", base.id));
    return {};
}

Result<std::optional<DeltaBlock>> DeltaReader::next() {
    if (ended_) return std::nullopt;
    std::array<std::byte, sizeof(BlockHead)> head{};
    GB_TRY(read_exactly(head));
    if (std::memcmp(head.data(), kBlockMagic.data(), kBlockMagic.size()) == 0) return read_block(head);
    GB_TRY(read_end(head));
    return std::nullopt;
}

Result<std::optional<DeltaBlock>> DeltaReader::read_block(std::span<const std::byte> bytes) {
    const auto head = from_bytes<BlockHead>(bytes);
    if (head.runs == 0 || head.runs > kDeltaBlockRuns || head.content_pages > kDeltaBlockPages)
        return damaged(fmt::format("the sizes of block {}", blocks_));
    runs_.resize(head.runs);
    GB_TRY(read_exactly(std::as_writable_bytes(std::span(runs_))));
    contents_.resize(std::size_t{head.content_pages} * kPageBytes);
    GB_TRY(read_exactly(contents_));
    if (head.checksum != checksum_of(head, runs_, contents_))
        return damaged(fmt::format("block {}", blocks_));
    GB_TRY(check_runs(head.content_pages));
    stats_.checksum = crc32c(bytes_of(head.checksum), stats_.checksum);
    ++blocks_;
    return DeltaBlock{runs_, contents_};
}

Status DeltaReader::check_runs(std::uint32_t content_pages) {
    std::uint64_t data = 0;
    for (const DeltaRun& run : runs_) {
        if (run.kind != RunKind::data && run.kind != RunKind::zero)
            return damaged("a run of an unknown kind");
        if (run.pages == 0) return damaged("an empty run");
        if (run.first_page < next_page_) return damaged("runs that overlap");
        if (run.first_page >= image_pages_ || run.pages > image_pages_ - run.first_page)
            return damaged("pages beyond the end of the memory");
        next_page_ = run.first_page + run.pages;
        (run.kind == RunKind::data ? data : stats_.zero_pages) += run.pages;
    }
    if (data != content_pages) return damaged("a block whose contents do not fit its runs");
    stats_.data_pages += data;
    return {};
}

Status DeltaReader::read_end(std::span<const std::byte> bytes) {
    const auto end = from_bytes<End>(bytes);
    if (end.magic != kEndMagic) return damaged(fmt::format("no block {} where one must be", blocks_));
    if (end.checksum != crc32c(before_checksum(end), stats_.checksum)) return damaged("its end");
    if (end.blocks != blocks_ || end.data_pages != stats_.data_pages || end.zero_pages != stats_.zero_pages)
        return damaged("blocks are missing");
    std::array<std::byte, 1> more{};
    GB_TRY_ASSIGN(const std::size_t got, source_(more));
    if (got != 0) return damaged("there is something behind its end");
    stats_.checksum = end.checksum;
    ended_ = true;
    return {};
}

}  // namespace gb::engine
