// SPDX-License-Identifier: Apache-2.0
#include "image/rootfs.h"

#include <sys/stat.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"
#include "image/apt_meter.h"
#include "image/apt_sources.h"
#include "image/build_folder.h"
#include "image/definition_hash.h"
#include "image/ext4.h"
#include "image/npm_packages.h"
#include "image/reporter.h"

namespace gb::image {
namespace fs = std::filesystem;
namespace {

// Raised when the same definition gives a different image because this file changed.
constexpr std::string_view kFormat = "rootfs 1";

// Kept in the image too: documentation is not wanted there later either, and fsync between packages is for
// machines whose disk outlives a power cut.
constexpr std::string_view kDpkgOptions[] = {
    "force-unsafe-io",
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/lintian/*",
};

// Packages with alternatives (Java) want to link manual pages into folders that were excluded.
constexpr std::string_view kManFolders =
    R"(mkdir -p "$1/usr/share/man/man1" "$1/usr/share/man/man7" "$1/usr/share/man/man8")";

// Run by mmdebstrap with the root file system as $1. Paths come in through the environment, never as text.
constexpr std::string_view kCopyFiles =
    R"(tar -C "$GLOVEBOX_FILES_{0}" --owner=0 --group=0 --mode=u=rwX,go=rX -cf - . | tar -C "$1" -xpf -)";
constexpr std::string_view kCopyNpm =
    R"(mkdir -p "$1/usr/local/lib" && cp -a "$GLOVEBOX_NPM_{0}/node_modules" "$1/usr/local/lib/")";
constexpr std::string_view kRunSetup =
    R"(cp "$GLOVEBOX_SETUP_{0}" "$1/run/glovebox-setup" && chmod 0755 "$1/run/glovebox-setup" && )"
    R"(chroot "$1" /usr/bin/env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive )"
    R"(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /run/glovebox-setup)";

// What mmdebstrap brings from the host or leaves to the first boot.
struct FinalFile {
    std::string_view name, content;
};
constexpr FinalFile kFinalFiles[] = {
    {"etc/resolv.conf", "nameserver 8.8.8.8\n"},
    {"etc/hostname", "glovebox\n"},
    {"etc/machine-id", ""},  // each sandbox gets its own when it starts
};
constexpr std::string_view kFinalRemovals[] = {
    "etc/apt/apt.conf.d/99mmdebstrap",  // proxies of the host
    "etc/.pwd.lock",
};

Status finish_tree(const fs::path& root) {
    for (const FinalFile& file : kFinalFiles) {
        ::unlink((root / file.name).c_str());  // never write through a link
        GB_TRY(write_file_atomic(root / file.name, file.content));
    }
    for (std::string_view name : kFinalRemovals) ::unlink((root / name).c_str());
    return {};
}

Status install(const TemplateDefinition& definition, const fs::path& work, const fs::path& root,
               Reporter& reporter) {
    RunOptions options;
    // A slow mirror may show nothing for long.
    options.timeout = {std::chrono::minutes(30), std::chrono::hours(12)};
    options.extra_env = {"LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"};
    const fs::path sources = work / "sources.list";
    GB_TRY(write_file_atomic(sources, debian_sources_list(detect_debian_mirrors(), kSuite)));
    // A mount namespace of its own: when the build is killed, no mount stays.
    std::vector<std::string> argv = {"unshare",          "--mount",   "mmdebstrap",
                                     "--mode=root",      "--verbose", "--format=directory",
                                     "--variant=minbase"};
    for (const std::string& option : host_apt_options()) argv.push_back("--aptopt=" + option);
    for (std::string_view option : kDpkgOptions) argv.push_back(fmt::format("--dpkgopt={}", option));
    argv.push_back(fmt::format("--essential-hook={}", kManFolders));
    argv.push_back(fmt::format("--include={}", fmt::join(definition.packages, ",")));
    for (std::size_t i = 0; i < definition.layers.size(); ++i) {
        const Layer& layer = definition.layers[i];
        const fs::path npm = work / fmt::format("npm-{}", i);
        GB_TRY(
            fetch_npm_packages(layer, npm, reporter, {.step = "fetch npm packages", .from = 0, .to = 0.05}));
        if (!layer.files.empty()) {
            options.extra_env.push_back(
                fmt::format("GLOVEBOX_FILES_{}={}", i, fs::absolute(layer.files).string()));
            argv.push_back("--customize-hook=" + fmt::format(fmt::runtime(kCopyFiles), i));
        }
        if (!layer.npm.empty()) {
            options.extra_env.push_back(fmt::format("GLOVEBOX_NPM_{}={}", i, npm.string()));
            argv.push_back("--customize-hook=" + fmt::format(fmt::runtime(kCopyNpm), i));
        }
        if (!layer.setup.empty()) {
            options.extra_env.push_back(
                fmt::format("GLOVEBOX_SETUP_{}={}", i, fs::absolute(layer.setup).string()));
            argv.push_back("--customize-hook=" + fmt::format(fmt::runtime(kRunSetup), i));
        }
    }
    argv.insert(argv.end(), {std::string(kSuite), root.string(), sources.string()});
    AptMeter meter;
    GB_TRY(reporter.run({.step = "install packages", .from = 0.05, .to = 0.9}, argv, options,
                        [&](std::string_view line) {
                            meter.line(line);
                            return Reading{meter.fraction(), meter.detail()};
                        }));
    return finish_tree(root);
}

Result<RootfsImage> describe(const fs::path& file, std::string hash, bool cached) {
    struct stat st{};
    if (::stat(file.c_str(), &st) != 0) return fail_errno(fmt::format("stat {}", file.string()));
    return RootfsImage{.file = file,
                       .hash = std::move(hash),
                       .size_bytes = static_cast<std::uint64_t>(st.st_size),
                       .stored_bytes = static_cast<std::uint64_t>(st.st_blocks) * 512,
                       .cached = cached};
}

}  // namespace

std::vector<std::string> rootfs_recipe() {
    std::vector<std::string> out = {std::string(kFormat),    std::string(kSuite),   std::string(kManFolders),
                                    std::string(kCopyFiles), std::string(kCopyNpm), std::string(kRunSetup)};
    for (std::string_view option : kDpkgOptions) out.emplace_back(option);
    for (const FinalFile& file : kFinalFiles) out.push_back(fmt::format("{}={}", file.name, file.content));
    for (std::string_view name : kFinalRemovals) out.emplace_back(name);
    return out;
}

Result<fs::path> rootfs_path(const TemplateDefinition& definition, const fs::path& cache) {
    GB_TRY_ASSIGN(std::string hash, definition_hash(definition));
    return cache / "rootfs" / fmt::format("{}-{}.ext4", definition.name, hash);
}

Result<RootfsImage> build_rootfs(const TemplateDefinition& definition, const fs::path& cache,
                                 const ProgressFn& progress) {
    GB_TRY_ASSIGN(std::string hash, definition_hash(definition));
    GB_TRY_ASSIGN(const fs::path file, rootfs_path(definition, cache));
    std::error_code ec;
    if (fs::exists(file, ec)) return describe(file, hash, true);
    if (::geteuid() != 0)
        return fail(ErrorCode::permission_denied,
                    fmt::format("building the root file system of '{}' needs root", definition.name));

    Reporter reporter(progress);
    reporter.report({.step = "wait for other builds"});
    GB_TRY_ASSIGN(BuildFolder work,
                  BuildFolder::make(cache / "rootfs", definition.name, definition.disk_mib));
    if (fs::exists(file, ec)) return describe(file, hash, true);

    const fs::path root = work.path() / "root";
    const fs::path image = file.parent_path() / fmt::format(".build-{}-{}", definition.name, random_id(8));
    if (auto status = install(definition, work.path(), root, reporter); !status)
        return std::unexpected(status.error().with(fmt::format("root file system of '{}'", definition.name)));
    GB_TRY(make_ext4(root, image, definition.disk_mib, reporter,
                     {.step = "make disk", .from = 0.9, .to = 0.99}));
    if (::rename(image.c_str(), file.c_str()) != 0)
        return fail_errno(fmt::format("rename to {}", file.string()));
    reporter.report({.step = "clean up", .from = 0.99, .to = 1});
    return describe(file, hash, false);
}

}  // namespace gb::image
