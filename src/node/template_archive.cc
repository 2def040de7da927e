// SPDX-License-Identifier: Apache-2.0
#include "node/template_archive.h"

#include <algorithm>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/units.h"
#include "image/definition.h"
#include "node/template_fit.h"
#include "node/template_store.h"

namespace gb {
namespace json = boost::json;
namespace {

constexpr std::string_view kMagic = "GBXTMPL\n";
constexpr std::uint32_t kArchiveFormat = 1;
constexpr std::uint32_t kLongestHeader = 1U << 20;
constexpr std::uint64_t kLargestPart = 1024 * kMib;  // of kernel, initramfs, device state
constexpr int kLargestDisk_mib = 16 << 20;           // what ext4 with small blocks can have

enum Kind : std::uint8_t { extent = 1, end_of_member = 2, end_of_archive = 3 };

void put(std::string& out, std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

std::uint64_t get(std::string_view in, std::size_t at, std::size_t bytes) {
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < bytes; ++i)
        out |= std::uint64_t{static_cast<unsigned char>(in[at + i])} << (8 * i);
    return out;
}

std::string head(std::uint8_t kind, std::uint8_t member, std::uint32_t length, std::uint64_t offset) {
    std::string out;
    put(out, kind, 1);
    put(out, member, 1);
    put(out, 0, 2);
    put(out, length, 4);
    put(out, offset, 8);
    return out;
}

std::unexpected<Error> damaged(std::string_view how) {
    return fail(ErrorCode::data_loss,
                fmt::format("the archive is damaged ({}): get or export it again", how));
}

bool is_plain_id(std::string_view id) {
    return id.size() >= 8 && id.size() <= 64 && is_build_id(id) && !id.starts_with('-');
}

Status check_manifest(const Manifest& m) {
    const bool good = image::is_definition_name(m.info.name) && is_plain_id(m.info.id) &&
                      is_plain_id(m.info.build_id) && m.info.cpu_count >= 1 && m.info.cpu_count <= 32 &&
                      m.info.memory_mib >= 64 && m.info.memory_mib <= 256 * 1024 && m.info.disk_mib >= 1 &&
                      m.info.disk_mib <= kLargestDisk_mib && m.info.created_ms >= 0;
    if (!good) return damaged("its manifest is none of a template");
    if (m.saved || m.boots || !m.image_build.empty()) return damaged("it holds a snapshot, not a template");
    if (m.accelerator == engine::Accelerator::kvm && (!m.processor || m.tsc_khz == 0))
        return damaged("it does not say which processor it was captured on");
    return {};
}

Status check_members(const ArchiveHeader& header) {
    const TemplateInfo& info = header.manifest.info;
    std::vector<std::string_view> names;
    for (const ArchiveMember& member : header.members) {
        if (std::ranges::find(kArchiveMembers, member.name) == kArchiveMembers.end())
            return damaged("it holds a file that no template has");
        names.push_back(member.name);
        const bool fits =
            member.name == "memory.img" ? member.size == static_cast<std::uint64_t>(info.memory_mib) * kMib
            : member.name == "disk.img" ? member.size > 0 && member.size % 512 == 0 &&
                                              member.size <= static_cast<std::uint64_t>(info.disk_mib) * kMib
                                        : member.size > 0 && member.size <= kLargestPart;
        if (!fits || member.data_bytes > member.size)
            return damaged(fmt::format("the size of {} is not what its machine has", member.name));
    }
    std::ranges::sort(names);
    const bool twice = std::ranges::adjacent_find(names) != names.end();
    for (std::string_view needed : {"disk.img", "memory.img", "state.bin"})
        if (twice || std::ranges::find(names, needed) == names.end())
            return damaged("a file of the template is missing");
    return {};
}

Result<ArchiveMember> parse_member(const json::value& value) {
    const json::object* object = value.if_object();
    const json::value* name = object != nullptr ? object->if_contains("name") : nullptr;
    const json::value* size = object != nullptr ? object->if_contains("size") : nullptr;
    const json::value* data = object != nullptr ? object->if_contains("data_bytes") : nullptr;
    if (name == nullptr || !name->is_string() || size == nullptr || !size->is_int64() ||
        size->get_int64() < 0 || data == nullptr || !data->is_int64() || data->get_int64() < 0)
        return damaged("its list of files cannot be read");
    return ArchiveMember{std::string(name->get_string()), static_cast<std::uint64_t>(size->get_int64()),
                         static_cast<std::uint64_t>(data->get_int64())};
}

}  // namespace

std::uint64_t ArchiveHeader::data_bytes() const {
    std::uint64_t out = 0;
    for (const ArchiveMember& member : members) out += member.data_bytes;
    return out;
}

std::string write_archive_header(const ArchiveHeader& header) {
    json::array members;
    for (const ArchiveMember& member : header.members)
        members.push_back(
            json::object{{"name", member.name}, {"size", member.size}, {"data_bytes", member.data_bytes}});
    const std::string text =
        json::serialize(json::object{{"architecture", kArchitecture},
                                     {"manifest", json::parse(write_manifest(header.manifest))},
                                     {"members", std::move(members)}});
    std::string out(kMagic);
    put(out, kArchiveFormat, 4);
    put(out, text.size(), 4);
    return out + sha256(text) + text;
}

Result<ArchivePrefix> parse_archive_prefix(std::string_view prefix) {
    if (prefix.size() != kArchivePrefixBytes || !prefix.starts_with(kMagic))
        return fail(ErrorCode::invalid_argument,
                    "this is no template archive: `glovebox template export` makes one");
    if (const std::uint64_t format = get(prefix, 8, 4); format != kArchiveFormat)
        return fail(
            ErrorCode::failed_precondition,
            fmt::format(
                "the archive has format {}, and this version of Glovebox reads format {}: use the same "
                "version on both machines",
                format, kArchiveFormat));
    ArchivePrefix out{static_cast<std::uint32_t>(get(prefix, 12, 4)), std::string(prefix.substr(16, 32))};
    if (out.header_bytes > kLongestHeader) return damaged("its header is too long");
    return out;
}

Result<ArchiveHeader> parse_archive_header(const ArchivePrefix& prefix, std::string_view text) {
    if (text.size() != prefix.header_bytes || sha256(text) != prefix.header_sha256)
        return damaged("the checksum of its header is another one");
    boost::system::error_code ec;
    const json::value value = json::parse(json::string_view(text.data(), text.size()), ec);
    const json::object* object = ec ? nullptr : value.if_object();
    const json::value* architecture = object != nullptr ? object->if_contains("architecture") : nullptr;
    const json::value* manifest = object != nullptr ? object->if_contains("manifest") : nullptr;
    const json::value* members = object != nullptr ? object->if_contains("members") : nullptr;
    if (architecture == nullptr || !architecture->is_string() || manifest == nullptr || members == nullptr ||
        !members->is_array() || members->get_array().size() > kArchiveMembers.size())
        return damaged("its header cannot be read");
    if (architecture->get_string() != kArchitecture)
        return fail(ErrorCode::failed_precondition,
                    fmt::format("the archive is for machines of architecture '{}', and this one is '{}'",
                                std::string_view(architecture->get_string()).substr(0, 40), kArchitecture));
    ArchiveHeader out;
    auto parsed = parse_manifest(json::serialize(*manifest));
    if (!parsed) return std::unexpected(parsed.error().with("the archive"));
    out.manifest = *std::move(parsed);
    out.manifest.imported_ms = 0;
    GB_TRY(check_manifest(out.manifest));
    for (const json::value& one : members->get_array()) {
        GB_TRY_ASSIGN(ArchiveMember member, parse_member(one));
        out.members.push_back(std::move(member));
    }
    GB_TRY(check_members(out));
    return out;
}

std::string extent_head(std::uint8_t member, std::uint64_t offset, std::uint32_t length) {
    return head(extent, member, length, offset);
}

std::string member_end(std::uint8_t member, std::string_view sha256) {
    return head(end_of_member, member, 0, 0) + std::string(sha256);
}

std::string archive_end() {
    return head(end_of_archive, 0, 0, 0);
}

Status ArchiveReader::feed(std::string_view bytes) {
    while (!bytes.empty()) {
        if (ended_) return damaged("something follows its end");
        if (left_ > 0) {
            GB_TRY(take_extent(bytes));
            continue;
        }
        const std::size_t take = std::min(bytes.size(), wanted_ - pending_.size());
        pending_ += bytes.substr(0, take);
        bytes.remove_prefix(take);
        if (pending_.size() == wanted_) GB_TRY(read_head());
    }
    return {};
}

Status ArchiveReader::take_extent(std::string_view& bytes) {
    const std::string_view piece = bytes.substr(0, left_);
    hash_.update(piece);
    GB_TRY(sink_.write(member_, offset_, piece));
    offset_ += piece.size();
    left_ -= static_cast<std::uint32_t>(piece.size());
    bytes.remove_prefix(piece.size());
    return {};
}

// A head, or a head with the checksum that follows it.
Status ArchiveReader::read_head() {
    const auto kind = static_cast<std::uint8_t>(pending_[0]);
    const std::uint64_t member = get(pending_, 1, 1), reserved = get(pending_, 2, 2),
                        length = get(pending_, 4, 4), offset = get(pending_, 8, 8);
    if (reserved != 0) return damaged("a record has an unknown form");
    if (kind == extent) {
        if (member_ >= members_.size() || member != member_ || length == 0 || length > kLongestExtent)
            return damaged("a record is not where it belongs");
        const ArchiveMember& to = members_[member_];
        if (offset < offset_ || offset > to.size || length > to.size - offset ||
            length > to.data_bytes - data_bytes_)
            return damaged(fmt::format("{} is larger than it says", to.name));
        hash_.update(pending_);
        data_bytes_ += length;
        offset_ = offset;
        left_ = static_cast<std::uint32_t>(length);
    } else if (kind == end_of_member) {
        if (member_ >= members_.size() || member != member_ || length != 0 || offset != 0)
            return damaged("a record is not where it belongs");
        if (wanted_ == kRecordHeadBytes) {
            wanted_ += 32;
            return {};
        }
        if (pending_.substr(kRecordHeadBytes) != hash_.finish())
            return damaged(fmt::format("the checksum of {} is another one", members_[member_].name));
        GB_TRY(sink_.complete(member_));
        ++member_;
        offset_ = data_bytes_ = 0;
    } else if (kind == end_of_archive) {
        if (member_ != members_.size() || member != 0 || length != 0 || offset != 0)
            return damaged("it ends too early");
        ended_ = true;
    } else {
        return damaged("a record has an unknown form");
    }
    pending_.clear();
    wanted_ = kRecordHeadBytes;
    return {};
}

}  // namespace gb
