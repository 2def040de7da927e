// SPDX-License-Identifier: Apache-2.0
// A captured template as one file. Pure: bytes in, bytes out.
//
//   0   8   "GBXTMPL\n"
//   8   4   version of the format, little-endian as all numbers
//   12  4   length of the header
//   16  32  SHA-256 of the header
//   48      the header, JSON: architecture, manifest, members with their sizes
//           a zstd stream of records, to the end of the file
//
// A record begins with 16 bytes: its kind (1), the member (1), 0 (2), a length (4), an offset (8). An
// *extent* is followed by that many bytes, which belong at that offset of the member; what no extent covers
// is a hole and reads as zeros. The *end of a member* is followed by the SHA-256 of all its extents, heads
// and bytes. Members come in the order of the header, extents in the order of their offsets, and the *end of
// the archive* is last.
//
// Checksums say that an archive is whole, not who made it: a template is a program, to be taken from people
// one trusts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto.h"
#include "base/result.h"
#include "node/manifest.h"

namespace gb {

inline constexpr std::size_t kArchivePrefixBytes = 48;
inline constexpr std::size_t kRecordHeadBytes = 16;
inline constexpr std::uint32_t kLongestExtent = 1U << 20;

// The files of a build that an archive carries. The empty overlay is made anew.
inline constexpr std::array<std::string_view, 5> kArchiveMembers{"disk.img", "memory.img", "state.bin",
                                                                 "vmlinuz", "initrd.img"};

struct ArchiveMember {
    std::string name;              // of kArchiveMembers
    std::uint64_t size = 0;        // of the file
    std::uint64_t data_bytes = 0;  // at most so many are not holes
};

struct ArchiveHeader {
    Manifest manifest;
    std::vector<ArchiveMember> members;
    [[nodiscard]] std::uint64_t data_bytes() const;  // of all members
};

// Prefix and header.
std::string write_archive_header(const ArchiveHeader& header);

struct ArchivePrefix {
    std::uint32_t header_bytes = 0;
    std::string header_sha256;
};
// `prefix` has kArchivePrefixBytes. invalid_argument when it is no template archive, failed_precondition when
// it is of another format or architecture, data_loss when it is damaged.
Result<ArchivePrefix> parse_archive_prefix(std::string_view prefix);
// Everything that a stranger may have written there is checked; sizes fit the machine that they are for.
Result<ArchiveHeader> parse_archive_header(const ArchivePrefix& prefix, std::string_view header);

std::string extent_head(std::uint8_t member, std::uint64_t offset, std::uint32_t length);
std::string member_end(std::uint8_t member, std::string_view sha256);
std::string archive_end();

// Reads the records as they come, in pieces of any size, and holds nothing but a head.
class ArchiveReader {
  public:
    class Sink {
      public:
        virtual ~Sink() = default;
        // Inside of the member; offsets ascend, and members come one after the other.
        virtual Status write(std::size_t member, std::uint64_t offset, std::string_view bytes) = 0;
        virtual Status complete(std::size_t member) = 0;  // its checksum was right
    };
    ArchiveReader(const ArchiveHeader& header, Sink& sink) : members_(header.members), sink_(sink) {}

    // data_loss when it is not what such an archive has; errors of the sink are handed on.
    Status feed(std::string_view bytes);
    [[nodiscard]] bool complete() const { return ended_; }

  private:
    Status read_head();
    Status take_extent(std::string_view& bytes);

    const std::vector<ArchiveMember>& members_;
    Sink& sink_;
    Sha256 hash_;
    std::string pending_;  // of a head, or of a checksum
    std::size_t wanted_ = kRecordHeadBytes;
    std::size_t member_ = 0;        // the one that is being read
    std::uint64_t offset_ = 0;      // in it, behind the last extent
    std::uint64_t data_bytes_ = 0;  // of it so far
    std::uint32_t left_ = 0;        // of the extent
    bool ended_ = false;
};

}  // namespace gb
