// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/vmm_root.h"

#include <charconv>
#include <map>
#include <set>

#include <sys/stat.h>

#include <fcntl.h>
#include <fmt/format.h>

#include "base/crypto.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/subprocess.h"
#include "engine/microvm/command_line.h"
#include "engine/microvm/vmm_seen.h"
#include "engine/microvm/vmm_shim_data.h"

namespace gb::engine {
namespace fs = std::filesystem;
namespace {

const std::string kVersionLine = "QEMU emulator version ";
constexpr const char* kSeen = "seen";  // beside the roots
constexpr const char* kEmulator = "accel-tcg-x86_64.so";
constexpr const char* kModules = "/usr/lib/x86_64-linux-gnu/qemu";
constexpr const char* kShim = "/lib/glovebox-vmm-shim.so";
// Changes when the layout does, so that a root of an older program is not taken for one of this.
constexpr std::string_view kLayout = "1";

constexpr const char* kRoms[] = {"bios-microvm.bin", "linuxboot_dma.bin", "pvh.bin", "qboot.rom",
                                 "kvmvapic.bin"};
constexpr const char* kMountPoints[] = {kJailDisk, kJailBase, kJailMemory, kJailKernel, kJailInitrd};

using Contents = std::map<std::string, fs::path>;  // path inside to file outside

fs::path find_in(const std::vector<fs::path>& folders, std::string_view name) {
    std::error_code ec;
    for (const fs::path& folder : folders)
        if (fs::exists(folder / name, ec)) return folder / name;
    return {};
}

// --list is what ldd(1) asks; the program is only mapped, not run.
Status add_with_libraries(Contents& contents, const std::string& inside, const fs::path& outside) {
    contents[inside] = outside;
    GB_TRY_ASSIGN(RunOutput list, run_checked({"/lib64/ld-linux-x86-64.so.2", "--list", outside.string()}));
    for (const fs::path& library : parse_loader_list(list.out)) contents[library.string()] = library;
    return {};
}

Result<Contents> collect(const VmmFiles& files) {
    Contents contents;
    GB_TRY(add_with_libraries(contents, kVmmBinary, files.qemu));
    contents["/lib64/ld-linux-x86-64.so.2"] = "/lib64/ld-linux-x86-64.so.2";
    // The emulator is a module of its own where QEMU is built with modules.
    if (fs::path tcg = find_in(files.module_folders, kEmulator); !tcg.empty())
        GB_TRY(add_with_libraries(contents, fmt::format("{}/{}", kModules, kEmulator), tcg));
    for (const char* rom : kRoms)
        if (fs::path found = find_in(files.rom_folders, rom); !found.empty())
            contents[fmt::format("{}/{}", kJailRoms, rom)] = found;
    if (!contents.contains(fmt::format("{}/bios-microvm.bin", kJailRoms)))
        return fail(ErrorCode::not_found, "bios-microvm.bin is not installed (package seabios)");
    return contents;
}

Status put(const fs::path& root, const std::string& inside, std::string_view data, unsigned mode) {
    const fs::path path = root / inside.substr(1);
    GB_TRY(make_dirs(path.parent_path()));
    GB_TRY_ASSIGN(UniqueFd fd, open_file(path, O_WRONLY | O_CREAT | O_EXCL, mode));
    GB_TRY(write_all(fd.get(), data));
    if (::fchmod(fd.get(), mode) != 0) return fail_errno("chmod " + path.string());
    return {};
}

// What decides, beside the files, what is in a root.
std::string question(const VmmFiles& files) {
    const char* libraries = ::getenv("LD_LIBRARY_PATH");
    std::string text = fmt::format("{}\n{}\n{}\n", sha256_hex(vmm_shim()), libraries != nullptr ? libraries : "",
                                   files.qemu.string());
    for (const auto* folders : {&files.module_folders, &files.rom_folders}) {
        text += "folders\n";
        for (const fs::path& folder : *folders) text += folder.string() + "\n";
    }
    return fmt::format("layout {} {}", kLayout, sha256_hex(text));
}

// Every file that is looked for, wherever it would be found, with what the loader goes by.
std::vector<fs::path> looked_at(const VmmFiles& files, const Contents& contents) {
    std::set<fs::path> out{files.qemu, "/etc/ld.so.cache", "/etc/ld.so.preload"};
    for (const auto& [inside, outside] : contents) out.insert(outside);
    for (const fs::path& folder : files.module_folders) out.insert(folder / kEmulator);
    for (const fs::path& folder : files.rom_folders)
        for (const char* rom : kRoms) out.insert(folder / rom);
    return {out.begin(), out.end()};
}

// Everything that belongs into a root, and what names it.
struct Parts {
    std::map<std::string, std::string> data;  // path inside to content
    std::vector<std::string> marks;           // of all files that this depends on, from before they were read
    VmmIdentity identity;
};

Result<Parts> read_parts(const VmmFiles& files) {
    std::error_code ec;
    if (!fs::exists(files.qemu, ec))
        return fail(ErrorCode::not_found,
                    fmt::format("{} is not installed (package qemu-system-x86)", files.qemu.string()));
    Parts out;
    GB_TRY_ASSIGN(RunOutput version, run_checked({files.qemu.string(), "--version"}));
    GB_TRY_ASSIGN(out.identity.version, parse_qemu_version(version.out));
    GB_TRY_ASSIGN(Contents contents, collect(files));
    out.marks = marks_of(looked_at(files, contents));
    std::string summary = fmt::format("layout {}\n", kLayout);
    for (const auto& [inside, outside] : contents) {
        GB_TRY_ASSIGN(std::string bytes, read_file(outside));
        summary += fmt::format("{} {}\n", sha256_hex(bytes), inside);
        out.data.emplace(inside, std::move(bytes));
    }
    summary += fmt::format("{} {}\n", sha256_hex(vmm_shim()), kShim);
    out.identity.id = sha256_hex(summary).substr(0, 24);
    return out;
}

}  // namespace

std::string QemuVersion::text() const {
    return fmt::format("{}.{}.{}", major, minor, patch);
}

Result<QemuVersion> parse_qemu_version(std::string_view output) {
    QemuVersion version;
    if (output.starts_with(kVersionLine)) {
        std::string_view rest = output.substr(kVersionLine.size());
        for (int* part : {&version.major, &version.minor, &version.patch}) {
            auto [end, ec] = std::from_chars(rest.data(), rest.data() + rest.size(), *part);
            if (ec != std::errc()) break;
            rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
            if (rest.empty() || rest.front() != '.') break;
            rest.remove_prefix(1);
        }
    }
    if (version.major > 0) return version;
    return fail(ErrorCode::invalid_argument, fmt::format("not QEMU's version: {}", output.substr(0, 80)));
}

std::vector<fs::path> parse_loader_list(std::string_view output) {
    // "	libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x…)"; the loader and the vdso have no arrow.
    std::set<fs::path> out;
    while (!output.empty()) {
        std::string_view line = output.substr(0, output.find('\n'));
        output.remove_prefix(std::min(output.size(), line.size() + 1));
        std::size_t arrow = line.find("=> /");
        if (arrow == std::string_view::npos) continue;
        line.remove_prefix(arrow + 3);
        out.emplace(line.substr(0, line.find(" (")));
    }
    return {out.begin(), out.end()};
}

Result<VmmIdentity> identify_vmm(const VmmFiles& files) {
    GB_TRY_ASSIGN(Parts parts, read_parts(files));
    return std::move(parts.identity);
}

namespace {

VmmRoot root_in(const fs::path& folder, const VmmIdentity& identity) {
    VmmRoot root;
    root.binary = kVmmBinary;
    root.id = identity.id;
    root.version = identity.version;
    root.path = folder / root.id;
    if (!has_readonly_backend(root.version)) root.environment.push_back(fmt::format("LD_PRELOAD={}", kShim));
    return root;
}

std::optional<VmmRoot> find_seen(const fs::path& folder, std::string_view asked) {
    const auto seen = get_seen(folder / kSeen, asked);
    if (!seen) return std::nullopt;
    const auto version = parse_qemu_version(kVersionLine + seen->version);
    if (!version) return std::nullopt;
    VmmRoot root = root_in(folder, {seen->id, *version});
    std::error_code ec;
    if (!fs::is_directory(root.path, ec)) return std::nullopt;
    return root;
}

}  // namespace

Result<VmmRoot> prepare_vmm_root(const fs::path& folder, const VmmFiles& files) {
    const std::string asked = question(files);
    if (auto root = find_seen(folder, asked)) return *std::move(root);
    GB_TRY_ASSIGN(const Parts parts, read_parts(files));
    std::error_code ec;
    VmmRoot root = root_in(folder, parts.identity);
    GB_TRY(make_dirs(folder));
    const auto remember = [&] {  // without it the next start takes longer
        (void)put_seen(folder / kSeen, {asked, root.id, root.version.text(), parts.marks});
    };
    if (fs::is_directory(root.path, ec)) {
        remember();
        return root;
    }

    const fs::path temporary = folder / (root.id + ".tmp-" + random_id(8));
    auto build = [&]() -> Status {
        for (const auto& [inside, bytes] : parts.data)
            GB_TRY(put(temporary, inside, bytes, inside.starts_with(kJailRoms) ? 0444 : 0555));
        GB_TRY(put(temporary, kShim, vmm_shim(), 0555));
        for (const char* mount_point : kMountPoints) GB_TRY(put(temporary, mount_point, {}, 0444));
        GB_TRY(make_dirs(temporary / "dev"));
        // Whatever the server's umask is, the jail's user must be able to walk here.
        fs::permissions(temporary, fs::perms(0755), ec);
        for (const auto& entry : fs::recursive_directory_iterator(temporary, ec))
            if (entry.is_directory(ec)) fs::permissions(entry.path(), fs::perms(0755), ec);
        // Another thread or process may have been quicker: its root is the same.
        if (::rename(temporary.c_str(), root.path.c_str()) != 0 && errno != EEXIST && errno != ENOTEMPTY)
            return fail_errno(fmt::format("rename to {}", root.path.string()));
        return {};
    };
    Status status = build();
    (void)remove_tree(temporary);
    if (!status) return std::unexpected(status.error());
    remember();
    return root;
}

}  // namespace gb::engine
