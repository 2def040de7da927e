// SPDX-License-Identifier: Apache-2.0
#include "node/template_import.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"
#include "base/units.h"
#include "node/template_archive.h"
#include "node/zstd_stream.h"

namespace gb {
namespace {

namespace fs = std::filesystem;

const TransferProgress kSilent = [](std::string_view, std::uint64_t, std::uint64_t) { return Status(); };

HostFacts host() {
    return {"vmm", "7.2.0", "no KVM", std::nullopt, 2'000'000};
}

class TemplateImportTest : public ::testing::Test {
  protected:
    void SetUp() override {
        if (::access("/usr/bin/qemu-img", X_OK) != 0) GTEST_SKIP() << "qemu-img is not installed";
        ASSERT_TRUE(make_dirs(dir_));
    }
    void TearDown() override { ASSERT_TRUE(remove_tree(dir_)); }

    void write_at(const fs::path& file, std::uint64_t size, std::uint64_t at, std::string_view bytes) {
        UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT, 0644));
        ASSERT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
        ASSERT_EQ(::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(at)),
                  static_cast<ssize_t>(bytes.size()));
    }

    // A template in a folder of its own; it has the content of one, but no machine would start from it.
    StoredTemplate make(const std::string& store, const std::string& name, const std::string& build) {
        StoredTemplate out;
        Manifest& m = out.manifest;
        m.info = {"id-of-" + name, name, build, 1, 64, 16, 1'700'000'000'000};
        m.vmm_id = "vmm";
        m.vmm_version = "7.2.0";
        m.key = "key";
        out.folder = dir_ / store / build;
        EXPECT_TRUE(make_dirs(out.folder));
        write_at(out.disk(), 16 * kMib, 5 * kMib + 100, random_bytes(300'000));
        write_at(out.memory(), 64 * kMib, 0, random_bytes(10'000));
        EXPECT_TRUE(write_file_atomic(out.state(), random_bytes(20'001)));
        EXPECT_TRUE(write_file_atomic(out.overlay(), "made anew"));
        EXPECT_TRUE(write_file_atomic(out.kernel(), random_bytes(5'000)));
        EXPECT_TRUE(write_file_atomic(out.initrd(), random_bytes(5'000)));
        EXPECT_TRUE(write_file_atomic(out.folder / "manifest.json", write_manifest(m)));
        return out;
    }

    std::string exported(const StoredTemplate& stored) {
        const fs::path file = dir_ / "archive";
        UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644));
        auto done = export_template(stored, fd.get(), kSilent);
        EXPECT_TRUE(done) << done.error().message;
        const std::string bytes = read_file(file).value();
        EXPECT_EQ(done->archive_bytes, bytes.size());
        return bytes;
    }

    Result<Imported> import(const std::string& bytes, const std::string& store,
                            const std::optional<HostFacts>& facts = host(),
                            const TransferProgress& progress = kSilent) {
        const fs::path file = dir_ / "to-import";
        EXPECT_TRUE(write_file_atomic(file, bytes));
        UniqueFd fd(::open(file.c_str(), O_RDONLY));
        TemplateStore templates(dir_ / store);
        return import_template(fd.get(), templates, {facts, try_kvm_}, progress);
    }

    [[nodiscard]] bool is_empty(const std::string& store) const {
        std::error_code ec;
        return !fs::exists(dir_ / store, ec) || fs::is_empty(dir_ / store, ec);
    }

    std::function<Status(const StoredTemplate&)> try_kvm_;
    fs::path dir_ = fs::temp_directory_path() / ("gb-import-" + random_id(10));
};

const std::string kBuild = "0f8fad5b-d9cb-469f-a165-70867728950e";

TEST_F(TemplateImportTest, WhatIsImportedIsWhatWasExported) {
    const StoredTemplate original = make("a", "base", kBuild);
    const std::string bytes = exported(original);
    EXPECT_LT(bytes.size(), 400'000U) << "holes are not stored";
    auto imported = import(bytes, "b");
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_FALSE(imported->was_there);
    TemplateStore store(dir_ / "b");
    auto found = store.find("base");
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->manifest.info.build_id, kBuild);
    EXPECT_EQ(found->manifest.info.id, original.manifest.info.id);
    EXPECT_EQ(found->manifest.key, "key");
    EXPECT_GT(found->manifest.imported_ms, 0);
    for (const char* file : {"disk.img", "memory.img", "state.bin", "vmlinuz", "initrd.img"}) {
        EXPECT_TRUE(*read_file(original.folder / file) == *read_file(found->folder / file)) << file;
        struct stat info{};
        ASSERT_EQ(::stat((found->folder / file).c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & 07777, 0444U) << file;
        EXPECT_LT(info.st_blocks * 512, 1'000'000) << file << " is as sparse as it was";
    }
    EXPECT_TRUE(read_file(found->overlay())->starts_with("QFI\xfb"));
    EXPECT_EQ(std::distance(fs::directory_iterator(dir_ / "b"), {}), 1) << "nothing else is there";
}

TEST_F(TemplateImportTest, TheSameBuildTwiceIsThereAlready) {
    const std::string bytes = exported(make("a", "base", kBuild));
    ASSERT_TRUE(import(bytes, "b"));
    auto again = import(bytes, "b");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_TRUE(again->was_there);
}

TEST_F(TemplateImportTest, ItTakesThePlaceOfAnotherBuildAndKeepsItsId) {
    StoredTemplate old = make("b", "base", "bbbbbbbb-0000");
    old.manifest.info.id = "id-from-before";
    old.manifest.info.created_ms += 1'000'000;  // made later than what is imported
    ASSERT_TRUE(write_file_atomic(old.folder / "manifest.json", write_manifest(old.manifest)));
    make("b", "other", "cccccccc-0000");
    auto imported = import(exported(make("a", "base", kBuild)), "b");
    ASSERT_TRUE(imported) << imported.error().message;
    TemplateStore store(dir_ / "b");
    EXPECT_EQ(store.find("base")->manifest.info.build_id, kBuild);
    EXPECT_EQ(store.find("base")->manifest.info.id, "id-from-before");
    EXPECT_FALSE(fs::exists(old.folder));
    EXPECT_TRUE(store.find("other"));
}

TEST_F(TemplateImportTest, AnIdThatAnotherNameHasIsNotTaken) {
    StoredTemplate other = make("b", "other", "cccccccc-0000");
    other.manifest.info.id = "id-of-base";
    ASSERT_TRUE(write_file_atomic(other.folder / "manifest.json", write_manifest(other.manifest)));
    ASSERT_TRUE(import(exported(make("a", "base", kBuild)), "b"));
    TemplateStore store(dir_ / "b");
    EXPECT_NE(store.find("base")->manifest.info.id, "id-of-base");
    EXPECT_EQ(store.find("id-of-base")->manifest.info.name, "other");
}

TEST_F(TemplateImportTest, WhatDoesNotFitIsRefusedUnlessItIsForced) {
    const std::string bytes = exported(make("a", "base", kBuild));
    make("b", "base", "bbbbbbbb-0000");
    HostFacts other = host();
    other.vmm_id = "other";
    auto refused = import(bytes, "b", other);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::failed_precondition);
    auto forced = import(bytes, "b", std::nullopt);
    ASSERT_TRUE(forced) << forced.error().message;
    EXPECT_TRUE(fs::exists(dir_ / "b/bbbbbbbb-0000")) << "what can be started here stays";
    std::string damaged = bytes;
    damaged[damaged.size() - 100] ^= 1;
    ASSERT_FALSE(import(damaged, "c", std::nullopt)) << "whether it is whole is always asked";
    EXPECT_TRUE(is_empty("c"));
}

TEST_F(TemplateImportTest, OneOfKvmIsTriedBeforeItAppears) {
    StoredTemplate original = make("a", "base", kBuild);
    original.manifest.accelerator = engine::Accelerator::kvm;
    original.manifest.processor = engine::Processor{"GenuineIntel", 6, 85, "Xeon", {"avx"}};
    EXPECT_FALSE(export_template(original, -1, kSilent)) << "the speed of its clock is not known";
    original.manifest.tsc_khz = 2'000'000;
    const std::string bytes = exported(original);
    HostFacts facts = host();
    EXPECT_EQ(import(bytes, "b", facts).error().code, ErrorCode::failed_precondition);
    facts.kvm_trouble.clear();
    facts.processor = original.manifest.processor;
    bool works = false;
    try_kvm_ = [&](const StoredTemplate& stored) -> Status {
        EXPECT_TRUE(fs::exists(stored.kernel()) && fs::exists(stored.initrd()));
        EXPECT_FALSE(fs::exists(dir_ / "b" / kBuild));
        if (works) return {};
        return fail(ErrorCode::failed_precondition, "it does not boot");
    };
    EXPECT_EQ(import(bytes, "b", facts).error().message, "it does not boot");
    EXPECT_TRUE(is_empty("b"));
    works = true;
    ASSERT_TRUE(import(bytes, "b", facts));
    EXPECT_EQ(TemplateStore(dir_ / "b").find("base")->manifest.processor, original.manifest.processor);
}

TEST_F(TemplateImportTest, DamagedAndShortenedArchivesLeaveNothing) {
    const std::string bytes = exported(make("a", "base", kBuild));
    for (std::size_t at = 0; at < bytes.size(); at += bytes.size() / 60 + 1) {
        std::string wrong = bytes;
        wrong[at] = static_cast<char>(wrong[at] ^ 0x10);
        EXPECT_FALSE(import(wrong, "b")) << "byte " << at;
        EXPECT_FALSE(import(bytes.substr(0, at), "b")) << "length " << at;
        EXPECT_TRUE(is_empty("b"));
    }
    EXPECT_EQ(import(bytes.substr(0, bytes.size() - 1), "b").error().code, ErrorCode::data_loss);
    EXPECT_EQ(import(bytes + "x", "b").error().code, ErrorCode::data_loss);
    EXPECT_EQ(import("", "b").error().code, ErrorCode::invalid_argument);
    EXPECT_TRUE(is_empty("b"));
}

TEST_F(TemplateImportTest, MoreThanTheHeaderSaysIsNotUnpacked) {
    ArchiveHeader header;
    header.manifest = make("a", "base", kBuild).manifest;
    header.members = {{"disk.img", 16 * kMib, 0}, {"memory.img", 64 * kMib, 0}, {"state.bin", 10, 10}};
    std::string bytes = write_archive_header(header);
    ZstdWriter zstd(3, [&](std::string_view piece) -> Status {
        bytes += piece;
        return {};
    });
    const std::string block(kLongestExtent, 'x');
    for (std::uint64_t at = 0; at < 16 * kMib; at += block.size()) {
        ASSERT_TRUE(zstd.write(extent_head(0, at, kLongestExtent)));
        ASSERT_TRUE(zstd.write(block));
    }
    ASSERT_TRUE(zstd.finish());
    EXPECT_LT(bytes.size(), 20'000U) << "it is small, and would be large";
    auto refused = import(bytes, "b");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::data_loss);
    EXPECT_TRUE(is_empty("b"));
}

TEST_F(TemplateImportTest, WhatHasNoRoomIsRefusedBeforeAnythingIsWritten) {
    ArchiveHeader header;
    header.manifest = make("a", "base", kBuild).manifest;
    header.manifest.info.disk_mib = 16 << 20;
    const std::uint64_t huge = std::uint64_t{16} << 40;
    header.members = {{"disk.img", huge, huge}, {"memory.img", 64 * kMib, 0}, {"state.bin", 10, 10}};
    auto refused = import(write_archive_header(header), "b");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::no_space) << refused.error().message;
    EXPECT_TRUE(is_empty("b"));
}

TEST_F(TemplateImportTest, AnInterruptedImportLeavesNothingAndOfAKilledOneTheNextCleansUp) {
    const std::string bytes = exported(make("a", "base", kBuild));
    auto stopped = import(bytes, "b", host(), [](std::string_view, std::uint64_t, std::uint64_t) {
        return Status(fail(ErrorCode::canceled, "interrupted"));
    });
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, ErrorCode::canceled);
    EXPECT_TRUE(is_empty("b"));
    ASSERT_TRUE(make_dirs(dir_ / "b/.import-killed"));
    ASSERT_TRUE(write_file_atomic(dir_ / "b/.import-killed/disk.img", "x"));
    ASSERT_TRUE(import(bytes, "b"));
    EXPECT_FALSE(fs::exists(dir_ / "b/.import-killed"));
}

TEST_F(TemplateImportTest, ABuildWithoutAKernelOfItsOwnIsExportedToo) {
    const StoredTemplate original = make("a", "base", kBuild);
    fs::remove(original.kernel());
    fs::remove(original.initrd());
    ASSERT_TRUE(import(exported(original), "b"));
    TemplateStore store(dir_ / "b");
    EXPECT_FALSE(fs::exists(store.find("base")->kernel()));
}

TEST_F(TemplateImportTest, ProgressComesToItsEnd) {
    std::uint64_t last = 0, whole = 0;
    const TransferProgress watch = [&](std::string_view step, std::uint64_t done,
                                       std::uint64_t total) -> Status {
        if (step == "read") return {};
        EXPECT_GE(done, last);
        EXPECT_LE(done, total);
        last = done;
        whole = total;
        return {};
    };
    ASSERT_TRUE(import(exported(make("a", "base", kBuild)), "b", host(), watch));
    EXPECT_GT(last, 300'000U);
    EXPECT_LE(last, whole);
}

}  // namespace
}  // namespace gb
