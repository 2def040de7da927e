// SPDX-License-Identifier: Apache-2.0
// The pages of a machine's memory that differ from the image it started from, as a file.
//
//   header   "GBXDELTA", version, page size, size of the image, SHA-256 of the image's id, checksum
//   blocks   "BLCK", number of runs, number of pages with content, checksum of all of the block;
//            runs {first page u64, pages u32, kind u32}; the contents, at most 1 MiB
//   end      "DEND", number of blocks, of pages with content, of zero pages; checksum of this and of every
//   block's
//
// Little endian. Runs are in ascending order and do not touch what came before, so a page is in it once or
// not at all. Checksums (CRC-32C) find damage and mix-ups, not forgery: the file belongs to root.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb::engine {

inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t kDeltaBlockPages = 256;  // with content, in one block
inline constexpr std::size_t kDeltaBlockRuns = 4096;
inline constexpr std::uint32_t kDeltaVersion = 1;

// The image that a delta belongs to. Two images with the same id are the same bytes.
struct MemoryBase {
    std::string id;
    std::uint64_t bytes = 0;  // a multiple of the page size
};

struct DeltaStats {
    std::uint64_t bytes = 0;       // of the file
    std::uint64_t data_pages = 0;  // with content
    std::uint64_t zero_pages = 0;  // without
    std::uint32_t checksum = 0;    // of the whole: the one in its end
};

enum class RunKind : std::uint32_t { data = 0, zero = 1 };
struct DeltaRun {
    std::uint64_t first_page = 0;
    std::uint32_t pages = 0;
    RunKind kind = RunKind::data;
};

// Writes one delta under a temporary name, which the destructor removes unless publish() gave it its own.
class DeltaWriter {
  public:
    static Result<DeltaWriter> create(const std::filesystem::path& path, const MemoryBase& base);
    DeltaWriter(DeltaWriter&&) noexcept;
    DeltaWriter& operator=(DeltaWriter&&) = delete;
    ~DeltaWriter();

    // Whole pages that follow each other, behind all that were added before.
    Status add(std::uint64_t first_page, std::span<const std::byte> contents);
    // The end of the file. Nothing may be added afterwards.
    Result<DeltaStats> finish();
    // Gives the file its name, durably or only for this run of the host.
    enum class Sync { yes, no };
    Status publish(Sync sync = Sync::yes);

  private:
    DeltaWriter(std::filesystem::path path, std::filesystem::path temporary, UniqueFd fd,
                std::uint64_t pages);
    Status flush();
    Status write(std::span<const std::byte> data);
    void extend(std::uint64_t page, RunKind kind);

    std::filesystem::path path_, temporary_;  // temporary_ is empty once it has its name
    UniqueFd fd_;
    std::uint64_t image_pages_;
    std::uint64_t next_page_ = 0;
    std::vector<DeltaRun> runs_;       // of the block that is being filled
    std::vector<std::byte> contents_;  // likewise
    DeltaStats stats_;
    std::uint64_t blocks_ = 0;
    bool finished_ = false;
};

struct DeltaBlock {
    std::span<const DeltaRun> runs;
    std::span<const std::byte> contents;  // of the data runs, one after the other
};

// Reads one delta block by block; what it hands out is checked. Everything wrong is data_loss, except a delta
// of another image, which is failed_precondition. A caller must not use any of it before next() has said that
// it ended well, or be able to throw all of it away.
class DeltaReader {
  public:
    // Fills the buffer as far as there are bytes; says how many.
    using Source = std::function<Result<std::size_t>(std::span<std::byte>)>;
    static Result<DeltaReader> open(const std::filesystem::path& path, const MemoryBase& base);
    static Result<DeltaReader> from(Source source, const MemoryBase& base);

    // The next block, valid until the next call; nothing at the end.
    Result<std::optional<DeltaBlock>> next();
    [[nodiscard]] const DeltaStats& stats() const { return stats_; }  // complete when it has ended

  private:
    DeltaReader(Source source, std::uint64_t pages) : source_(std::move(source)), image_pages_(pages) {}
    Status read_exactly(std::span<std::byte> buffer);
    Status read_header(const MemoryBase& base);
    Result<std::optional<DeltaBlock>> read_block(std::span<const std::byte> head);
    Status read_end(std::span<const std::byte> head);
    Status check_runs(std::uint32_t content_pages);

    Source source_;
    std::uint64_t image_pages_;
    std::uint64_t next_page_ = 0;
    std::uint64_t blocks_ = 0;
    bool ended_ = false;
    DeltaStats stats_;
    std::vector<DeltaRun> runs_;
    std::vector<std::byte> contents_;
};

}  // namespace gb::engine
