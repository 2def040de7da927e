// SPDX-License-Identifier: Apache-2.0
// Whatever an archive holds: no file but those of a template, sizes that fit its machine, no byte outside of
// its file and none more than the header said, in whatever pieces it comes.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/crypto.h"
#include "node/template_archive.h"
#include "node/zstd_stream.h"

namespace {

using namespace gb;

void require(bool good) {
    if (!good) std::abort();
}

class Watcher : public ArchiveReader::Sink {
  public:
    explicit Watcher(const ArchiveHeader& header) : header_(header) {}
    Status write(std::size_t member, std::uint64_t offset, std::string_view bytes) override {
        require(member == completed_ && member < header_.members.size() && !bytes.empty());
        const ArchiveMember& file = header_.members[member];
        require(offset >= next_ && offset <= file.size && bytes.size() <= file.size - offset);
        next_ = offset + bytes.size();
        data_ += bytes.size();
        require(data_ <= file.data_bytes);
        return {};
    }
    Status complete(std::size_t member) override {
        require(member == completed_++);
        next_ = data_ = 0;
        return {};
    }
    [[nodiscard]] std::size_t completed() const { return completed_; }

  private:
    const ArchiveHeader& header_;
    std::size_t completed_ = 0;
    std::uint64_t next_ = 0, data_ = 0;
};

ArchiveHeader small_header() {
    ArchiveHeader out;
    out.members = {{"disk.img", 5000, 3000}, {"memory.img", 1 << 20, 9000}, {"state.bin", 40, 40}};
    return out;
}

void read_records(const ArchiveHeader& header, std::string_view bytes, std::size_t piece) {
    Watcher watcher(header);
    ArchiveReader reader(header, watcher);
    while (!bytes.empty()) {
        const std::string_view now = bytes.substr(0, piece);
        if (!reader.feed(now)) return;
        bytes.remove_prefix(now.size());
    }
    if (reader.complete()) require(watcher.completed() == header.members.size());
}

void check(const ArchiveHeader& header) {
    require(header.members.size() >= 3 && header.members.size() <= kArchiveMembers.size());
    for (const ArchiveMember& member : header.members) {
        require(member.name.find('/') == std::string::npos && member.name.find('.') != 0);
        require(member.data_bytes <= member.size);
    }
    require(header.manifest.info.name.find('/') == std::string::npos);
    require(header.manifest.info.build_id.find_first_of("/.") == std::string::npos);
    // What was read can be written and read again.
    const std::string again = write_archive_header(header);
    auto prefix = parse_archive_prefix(again.substr(0, kArchivePrefixBytes));
    require(prefix.has_value());
    require(parse_archive_header(*prefix, again.substr(kArchivePrefixBytes)).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
    const std::size_t piece = data[1] % 64 + 1;
    switch (data[0] % 4) {
        case 0: {  // as it comes from a stranger
            auto prefix = parse_archive_prefix(bytes.substr(0, kArchivePrefixBytes));
            if (!prefix) return 0;
            require(prefix->header_bytes <= 1U << 20);
            if (auto header = parse_archive_header(*prefix, bytes.substr(kArchivePrefixBytes)))
                check(*header);
            return 0;
        }
        case 1: {  // a header whose checksum is right
            const ArchivePrefix prefix{static_cast<std::uint32_t>(bytes.size()), sha256(bytes)};
            if (auto header = parse_archive_header(prefix, bytes)) check(*header);
            return 0;
        }
        case 2:
            read_records(small_header(), bytes, piece);
            return 0;
        default: {  // compressed
            const ArchiveHeader header = small_header();
            Watcher watcher(header);
            ArchiveReader records(header, watcher);
            ZstdReader zstd([&](std::string_view plain) { return records.feed(plain); });
            std::string_view rest = bytes;
            while (!rest.empty()) {
                const std::string_view now = rest.substr(0, piece);
                if (!zstd.feed(now)) return 0;
                rest.remove_prefix(now.size());
            }
            return 0;
        }
    }
}
