// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/vmm_root.h"

#include <thread>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/ids.h"
#include "engine/microvm/vmm_shim_data.h"

namespace gb::engine {
namespace {

namespace fs = std::filesystem;

TEST(QemuVersion, IsReadFromTheFirstLine) {
    auto debian =
        parse_qemu_version("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright\n");
    ASSERT_TRUE(debian.has_value());
    EXPECT_EQ(debian->text(), "7.2.22");
    EXPECT_EQ(parse_qemu_version("QEMU emulator version 10.0\n")->text(), "10.0.0");
    EXPECT_EQ(parse_qemu_version("QEMU emulator version 8.2.2 (Debian 1:8.2.2+ds-0ubuntu1.16)\n")->text(), "8.2.2");
    EXPECT_EQ(parse_qemu_version("QEMU emulator version 10.0.13 (Debian 1:10.0.13+ds-0+deb13u1)\n")->text(), "10.0.13");
    EXPECT_EQ(parse_qemu_version("QEMU emulator version 10.2.0-rc1 (v10.2.0-rc1)\n")->text(), "10.2.0");
    for (const char* text :
         {"", "QEMU emulator version ", "QEMU emulator version x.y", "qemu-img version 7.2.22"})
        EXPECT_FALSE(parse_qemu_version(text).has_value()) << text;
}

TEST(QemuVersion, WhoOpensAnImageReadOnlyItself) {
    for (const QemuVersion& version : {QemuVersion{7, 2, 22}, QemuVersion{8, 0, 0}, QemuVersion{8, 1, 5}})
        EXPECT_FALSE(has_readonly_backend(version)) << version.text();
    for (const QemuVersion& version :
         {QemuVersion{8, 2, 0}, QemuVersion{8, 2, 2}, QemuVersion{9, 0, 0}, QemuVersion{10, 0, 13}})
        EXPECT_TRUE(has_readonly_backend(version)) << version.text();
}

TEST(LoaderList, NamesLibrariesOnce) {
    const char* text =
        "\tlinux-vdso.so.1 (0x00007f150efab000)\n"
        "\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f150ee99000)\n"
        "\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f150ee99000)\n"
        "\tlibnone.so => not found\n"
        "\t/lib64/ld-linux-x86-64.so.2 (0x00007f150efad000)\n";
    EXPECT_EQ(parse_loader_list(text), std::vector<fs::path>{"/lib/x86_64-linux-gnu/libz.so.1"});
}

TEST(VmmShim, IsALibrary) {
    EXPECT_TRUE(
        vmm_shim().starts_with("\x7f"
                               "ELF"));
}

class VmmRootTest : public ::testing::Test {
  protected:
    void TearDown() override { fs::remove_all(folder_); }
    const fs::path folder_ = fs::temp_directory_path() / ("glovebox-vmm-" + random_id(8));
};

TEST_F(VmmRootTest, MissingQemuIsSaid) {
    VmmFiles files;
    files.qemu = folder_ / "qemu";
    EXPECT_EQ(prepare_vmm_root(folder_, files).error().code, ErrorCode::not_found);
}

TEST_F(VmmRootTest, IsMadeOnceAndComplete) {
    if (!fs::exists(VmmFiles().qemu)) GTEST_SKIP() << "QEMU is not installed";
    std::vector<std::thread> threads;
    std::vector<std::string> ids(3);
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&, i] {
            auto root = prepare_vmm_root(folder_);
            ASSERT_TRUE(root.has_value()) << root.error().message;
            ids[i] = root->id;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(ids[0], ids[1]);
    EXPECT_EQ(ids[0], ids[2]);
    fs::remove(folder_ / "seen");  // what the next start goes by
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "no leftovers";
    const fs::path root = folder_ / ids[0];
    for (const char* file :
         {"usr/bin/qemu-system-x86_64", "lib64/ld-linux-x86-64.so.2", "usr/share/qemu/bios-microvm.bin",
          "lib/glovebox-vmm-shim.so", "vm/disk", "vm/base", "vm/memory", "vm/kernel", "vm/initrd"})
        EXPECT_TRUE(fs::exists(root / file)) << file;
    EXPECT_TRUE(fs::is_directory(root / "dev"));
    EXPECT_TRUE(fs::is_empty(root / "dev"));
    for (const auto& entry : fs::recursive_directory_iterator(root))
        EXPECT_EQ(entry.status().permissions() & (fs::perms::group_write | fs::perms::others_write),
                  fs::perms::none)
            << entry.path();
}

// Nothing is run, read or hashed while the files are what they were: a root of another name is believed then.
TEST_F(VmmRootTest, IsFoundAgainByWhatStatSays) {
    if (!fs::exists(VmmFiles().qemu)) GTEST_SKIP() << "QEMU is not installed";
    VmmFiles files;
    const fs::path roms = folder_ / "roms";
    ASSERT_TRUE(make_dirs(roms).has_value());
    ASSERT_TRUE(write_file_atomic(roms / "bios-microvm.bin", "one").has_value());
    files.rom_folders.insert(files.rom_folders.begin(), roms);
    const fs::path vmm = folder_ / "vmm";
    const auto first = prepare_vmm_root(vmm, files);
    ASSERT_TRUE(first.has_value()) << first.error().message;
    std::string seen = *read_file(vmm / "seen");
    const std::string name(first->id.size(), 'x');
    fs::create_directory(vmm / name);
    const auto rename_in_seen = [&] {
        ASSERT_TRUE(write_file_atomic(vmm / "seen", seen.replace(seen.find(first->id), first->id.size(), name)).has_value());
    };
    rename_in_seen();
    const auto again = prepare_vmm_root(vmm, files);
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_EQ(again->id, name);
    EXPECT_EQ(again->version, first->version);
    EXPECT_EQ(again->environment, first->environment);
    EXPECT_EQ(again->path, vmm / name);

    // A file that comes into a folder that is looked into first.
    ASSERT_TRUE(write_file_atomic(roms / "pvh.bin", "new").has_value());
    const auto more = prepare_vmm_root(vmm, files);
    ASSERT_TRUE(more.has_value()) << more.error().message;
    EXPECT_NE(more->id, name);
    EXPECT_NE(more->id, first->id);
    // One that changes, and one that goes.
    ASSERT_TRUE(write_file_atomic(roms / "bios-microvm.bin", "two").has_value());
    EXPECT_NE(prepare_vmm_root(vmm, files)->id, more->id);
    ASSERT_TRUE(write_file_atomic(roms / "bios-microvm.bin", "one").has_value());
    fs::remove(roms / "pvh.bin");
    EXPECT_EQ(prepare_vmm_root(vmm, files)->id, first->id);
    // Of other files, of a root that is gone, and what is cut.
    EXPECT_NE(prepare_vmm_root(vmm)->id, first->id);
    fs::remove_all(vmm / first->id);
    ASSERT_EQ(prepare_vmm_root(vmm, files)->id, first->id);
    EXPECT_TRUE(fs::exists(vmm / first->id / "usr/bin/qemu-system-x86_64"));
    seen = *read_file(vmm / "seen");
    seen.resize(seen.size() - 3);
    rename_in_seen();
    EXPECT_EQ(prepare_vmm_root(vmm, files)->id, first->id);
}

}  // namespace
}  // namespace gb::engine
