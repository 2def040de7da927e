// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"
#include "node/template_archive.h"

#include <functional>
#include <map>

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace gb {
namespace {

namespace json = boost::json;

ArchiveHeader example() {
    ArchiveHeader out;
    out.manifest.info = {"a1b2c3d4e5f6a7b8c9d0", "base", "0f8fad5b-d9cb-469f-a165-70867728950e", 1, 64, 16,
                         1'700'000'000'000};
    out.members = {
        {"disk.img", 16 * kMib, 3 * kMib}, {"memory.img", 64 * kMib, kMib}, {"state.bin", 1000, 1000}};
    return out;
}

Result<ArchiveHeader> read(const std::string& bytes) {
    auto prefix = parse_archive_prefix(std::string_view(bytes).substr(0, kArchivePrefixBytes));
    if (!prefix) return std::unexpected(prefix.error());
    return parse_archive_header(*prefix,
                                std::string_view(bytes).substr(std::min(bytes.size(), kArchivePrefixBytes)));
}

// A header whose checksum is right, whatever it says.
Result<ArchiveHeader> read_json(const json::value& value) {
    const std::string text = json::serialize(value);
    return parse_archive_header({static_cast<std::uint32_t>(text.size()), sha256(text)}, text);
}

TEST(ArchiveHeader, ReadsWhatItWrites) {
    auto header = read(write_archive_header(example()));
    ASSERT_TRUE(header) << header.error().message;
    EXPECT_EQ(write_manifest(header->manifest), write_manifest(example().manifest));
    ASSERT_EQ(header->members.size(), 3U);
    EXPECT_EQ(header->members[1].name, "memory.img");
    EXPECT_EQ(header->members[1].size, 64 * kMib);
    EXPECT_EQ(header->data_bytes(), 4 * kMib + 1000);
}

TEST(ArchiveHeader, EveryFlippedBitIsSeen) {
    const std::string right = write_archive_header(example());
    for (std::size_t i = 0; i < right.size(); ++i)
        for (int bit : {0, 3, 7}) {
            std::string wrong = right;
            wrong[i] = static_cast<char>(wrong[i] ^ (1 << bit));
            EXPECT_FALSE(read(wrong)) << "byte " << i;
        }
    for (std::size_t length = 0; length < right.size(); ++length) EXPECT_FALSE(read(right.substr(0, length)));
}

TEST(ArchiveHeader, SaysWhatIsNotAnArchiveAndWhatIsOfAnotherVersion) {
    EXPECT_EQ(read(std::string(200, 'x')).error().code, ErrorCode::invalid_argument);
    std::string later = write_archive_header(example());
    later[8] = 2;
    EXPECT_EQ(read(later).error().code, ErrorCode::failed_precondition);
    EXPECT_NE(read(later).error().message.find("format 2"), std::string::npos);
}

json::object object_of(const ArchiveHeader& header) {
    return json::parse(write_archive_header(header).substr(kArchivePrefixBytes)).as_object();
}

TEST(ArchiveHeader, AnotherArchitectureIsRefused) {
    json::object object = object_of(example());
    object["architecture"] = "riscv64";
    EXPECT_EQ(read_json(object).error().code, ErrorCode::failed_precondition);
    EXPECT_NE(read_json(object).error().message.find("riscv64"), std::string::npos);
}

TEST(ArchiveHeader, HostileHeadersAreRefused) {
    const std::vector<std::function<void(json::object&)>> changes{
        [](json::object& o) { o.erase("manifest"); },
        [](json::object& o) { o.erase("members"); },
        [](json::object& o) { o["members"] = "x"; },
        [](json::object& o) { o["members"].as_array().pop_back(); },
        [](json::object& o) { o["members"].at(0).as_object()["name"] = "../../etc/passwd"; },
        [](json::object& o) { o["members"].at(0).as_object()["name"] = "manifest.json"; },
        [](json::object& o) { o["members"].at(0).as_object()["name"] = "memory.img"; },
        [](json::object& o) { o["members"].as_array().push_back(o["members"].at(2)); },
        [](json::object& o) { o["members"].at(0).as_object()["size"] = -1; },
        [](json::object& o) { o["members"].at(0).as_object()["size"] = std::int64_t{17 << 20}; },
        [](json::object& o) { o["members"].at(0).as_object()["size"] = 1000; },
        [](json::object& o) { o["members"].at(1).as_object()["size"] = std::int64_t{128 << 20}; },
        [](json::object& o) { o["members"].at(2).as_object()["size"] = std::int64_t{2} << 30; },
        [](json::object& o) { o["members"].at(2).as_object()["data_bytes"] = 1001; },
        [](json::object& o) { o["members"].at(2).as_object()["data_bytes"] = 0.5; },
        [](json::object& o) { o["manifest"].as_object()["name"] = "../base"; },
        [](json::object& o) { o["manifest"].as_object()["name"] = ""; },
        [](json::object& o) { o["manifest"].as_object()["build_id"] = ".."; },
        [](json::object& o) { o["manifest"].as_object()["build_id"] = "../../../tmp/x"; },
        [](json::object& o) { o["manifest"].as_object()["build_id"] = "-rf-everything"; },
        [](json::object& o) { o["manifest"].as_object()["id"] = "A/B"; },
        [](json::object& o) { o["manifest"].as_object()["cpu_count"] = 0; },
        [](json::object& o) { o["manifest"].as_object()["cpu_count"] = 1000; },
        [](json::object& o) { o["manifest"].as_object()["memory_mib"] = 1; },
        [](json::object& o) { o["manifest"].as_object()["disk_mib"] = -5; },
        [](json::object& o) { o["manifest"].as_object()["boots"] = true; },
        [](json::object& o) { o["manifest"].as_object()["image_build"] = "other"; },
        [](json::object& o) { o["manifest"].as_object()["accelerator"] = "kvm"; },  // without a processor
        [](json::object& o) { o["manifest"].as_object()["format"] = 99; },
    };
    ASSERT_TRUE(read_json(object_of(example())));
    for (std::size_t i = 0; i < changes.size(); ++i) {
        json::object object = object_of(example());
        changes[i](object);
        EXPECT_FALSE(read_json(object)) << "change " << i;
    }
    EXPECT_FALSE(read_json("text"));
}

class Files : public ArchiveReader::Sink {
  public:
    Status write(std::size_t member, std::uint64_t offset, std::string_view bytes) override {
        std::string& file = content[member];
        if (file.size() < offset + bytes.size()) file.resize(offset + bytes.size());
        file.replace(offset, bytes.size(), bytes);
        return {};
    }
    Status complete(std::size_t member) override {
        completed.push_back(member);
        return {};
    }
    std::map<std::size_t, std::string> content;
    std::vector<std::size_t> completed;
};

// The records of example() with an extent at 4096 of the disk, one of the state, and nothing but a hole as
// memory.
std::string right_records() {
    std::string out;
    Sha256 hash;
    const auto add = [&](std::uint8_t member, std::uint64_t offset, std::string_view bytes) {
        const std::string record =
            extent_head(member, offset, static_cast<std::uint32_t>(bytes.size())) + std::string(bytes);
        hash.update(record);
        out += record;
    };
    add(0, 4096, "disk");
    add(0, 8192, "more");
    out += member_end(0, hash.finish());
    out += member_end(1, hash.finish());
    add(2, 0, "state");
    out += member_end(2, hash.finish());
    return out + archive_end();
}

Status read_records(const std::string& bytes, std::size_t piece, Files& files, bool& complete) {
    const ArchiveHeader header = example();
    ArchiveReader reader(header, files);
    Status status;
    for (std::size_t at = 0; at < bytes.size() && status; at += piece)
        status = reader.feed(std::string_view(bytes).substr(at, piece));
    complete = reader.complete();
    return status;
}

bool is_refused(const std::string& bytes) {
    Files files;
    bool complete = false;
    return !read_records(bytes, bytes.size(), files, complete) || !complete;
}

TEST(ArchiveReader, ReadsInPiecesOfAnySize) {
    for (std::size_t piece : {1, 3, 1000}) {
        Files files;
        bool complete = false;
        const Status status = read_records(right_records(), piece, files, complete);
        ASSERT_TRUE(status) << status.error().message;
        EXPECT_TRUE(complete);
        EXPECT_EQ(files.completed, (std::vector<std::size_t>{0, 1, 2}));
        EXPECT_EQ(files.content[0].substr(4096, 4), "disk");
        EXPECT_EQ(files.content[0].substr(8192), "more");
        EXPECT_FALSE(files.content.contains(1));
        EXPECT_EQ(files.content[2], "state");
    }
}

TEST(ArchiveReader, EveryFlippedBitAndEveryCutIsSeen) {
    const std::string right = right_records();
    for (std::size_t i = 0; i < right.size(); ++i)
        for (int bit = 0; bit < 8; ++bit) {
            std::string wrong = right;
            wrong[i] = static_cast<char>(wrong[i] ^ (1 << bit));
            EXPECT_TRUE(is_refused(wrong)) << "byte " << i << " bit " << bit;
        }
    for (std::size_t length = 0; length < right.size(); ++length)
        EXPECT_TRUE(is_refused(right.substr(0, length)));
    EXPECT_TRUE(is_refused(right + "x"));
    EXPECT_TRUE(is_refused(right + archive_end()));
}

TEST(ArchiveReader, NothingIsWrittenOutsideOfAMember) {
    const std::string kilobyte(1024, 'x');
    const std::vector<std::string> hostile{
        extent_head(3, 0, 4) + "data",                      // no such member
        extent_head(1, 0, 4) + "data",                      // out of order
        extent_head(0, 16 * kMib, 4) + "data",              // behind the end
        extent_head(0, 16 * kMib - 2, 4) + "data",          // over the end
        extent_head(0, ~std::uint64_t{0} - 1, 4) + "data",  // wraps around
        extent_head(0, 0, kLongestExtent + 1) + "data",     // too long
        extent_head(0, 0, 0),                               // says nothing, as often as it likes
        extent_head(0, 4096, 4) + "data" + extent_head(0, 4098, 4) + "data",  // over the last one
        archive_end(),
    };
    for (const std::string& records : hostile) {
        Files files;
        bool complete = false;
        EXPECT_EQ(read_records(records, records.size(), files, complete).error().code, ErrorCode::data_loss);
    }
    // More data than the header said, within the file.
    std::string more;
    for (std::uint64_t at = 0; at < 4 * kMib; at += kilobyte.size())
        more += extent_head(0, at, 1024) + kilobyte;
    Files files;
    bool complete = false;
    EXPECT_EQ(read_records(more, more.size(), files, complete).error().code, ErrorCode::data_loss);
    EXPECT_EQ(files.content[0].size(), 3 * kMib);
}

}  // namespace
}  // namespace gb
