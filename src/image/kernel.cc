// SPDX-License-Identifier: Apache-2.0
#include "image/kernel.h"

#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "image/apt_sources.h"
#include "image/build_folder.h"
#include "image/modules.h"
#include "image/reporter.h"

namespace gb::image {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kMetaPackage = "linux-image-cloud-amd64";

std::string trimmed(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
}

// apt with state of its own, so that neither the host's sources nor its package lists matter, nor are they
// changed.
struct PrivateApt {
    fs::path folder;
    std::vector<std::string> settings;

    static Result<PrivateApt> make(const fs::path& folder) {
        GB_TRY(make_dirs(folder / "lists/partial"));
        GB_TRY(make_dirs(folder / "archives/partial"));
        GB_TRY(write_file_atomic(folder / "status", ""));
        GB_TRY(
            write_file_atomic(folder / "sources.list", debian_sources_list(detect_debian_mirrors(), kSuite)));
        auto path = [&](std::string_view name) { return (folder / name).string(); };
        return PrivateApt{
            folder,
            {"Dir::State=" + folder.string(), "Dir::State::lists=" + path("lists"),
             "Dir::State::status=" + path("status"), "Dir::Cache=" + folder.string(),
             "Dir::Cache::archives=" + path("archives"), "Dir::Etc::sourcelist=" + path("sources.list"),
             "Dir::Etc::sourceparts=-", "Dir::Etc::preferences=-", "Dir::Etc::preferencesparts=-",
             "APT::Architecture=amd64", "APT::Architectures=amd64", "Acquire::Languages=none",
             // The folder is ours alone; apt's own user could not write into it.
             "APT::Sandbox::User="}};
    }

    [[nodiscard]] std::vector<std::string> command(std::string_view program,
                                                   std::initializer_list<std::string_view> arguments) const {
        std::vector<std::string> argv = {std::string(program)};
        for (const std::string& setting : settings) argv.insert(argv.end(), {"-o", setting});
        argv.insert(argv.end(), arguments.begin(), arguments.end());
        return argv;
    }
};

// The first file in `folder` whose name starts so.
Result<fs::path> find_file(const fs::path& folder, std::string_view prefix) {
    std::error_code ec;
    for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
        if (it->path().filename().string().starts_with(prefix)) return it->path();
    return fail(ErrorCode::not_found, fmt::format("{} has no file {}*", folder.string(), prefix));
}

// Copies a module without its compression, which the kernel need not understand.
Result<std::string> place_module(const fs::path& from, const fs::path& folder) {
    std::string name = from.filename();
    GB_TRY_ASSIGN(std::string content, read_file(from));
    for (auto [ending, program] : {std::pair{".xz", "xz"}, std::pair{".zst", "zstd"}}) {
        if (!name.ends_with(ending)) continue;
        GB_TRY_ASSIGN(RunOutput output, run_checked({program, "-dc", from.string()}));
        content = std::move(output.out);
        name.resize(name.size() - std::string_view(ending).size());
    }
    GB_TRY(write_file_atomic(folder / name, content));
    return name;
}

// Picks what a guest needs from an unpacked package.
Status arrange(const fs::path& package, const fs::path& out, std::string_view version) {
    GB_TRY_ASSIGN(fs::path vmlinuz, find_file(package / "boot", "vmlinuz-"));
    const std::string release = vmlinuz.filename().string().substr(8);
    const fs::path tree = package / "lib/modules" / release;
    GB_TRY(run_checked({"depmod", "-b", package.string(), release}));
    GB_TRY_ASSIGN(std::string dep, read_file(tree / "modules.dep"));
    GB_TRY_ASSIGN(std::string builtin, read_file(tree / "modules.builtin"));
    GB_TRY_ASSIGN(std::vector<std::string> order, module_load_order(dep, builtin, guest_modules()));

    GB_TRY(make_dirs(out / "modules"));
    std::string names;
    for (const std::string& file : order) {
        GB_TRY_ASSIGN(std::string name, place_module(tree / file, out / "modules"));
        names += name + "\n";
    }
    GB_TRY(write_file_atomic(out / "modules/order", names));
    GB_TRY(copy_file_sparse(vmlinuz, out / "vmlinuz"));
    GB_TRY(copy_file_sparse(package / "boot" / ("config-" + release), out / "config"));
    GB_TRY(write_file_atomic(out / "release", release + "\n"));
    return write_file_atomic(out / "version", fmt::format("{}\n", version));
}

Result<GuestKernel> open_kernel(const fs::path& folder) {
    GuestKernel kernel{
        .vmlinuz = folder / "vmlinuz", .config = folder / "config", .modules_dir = folder / "modules"};
    GB_TRY_ASSIGN(std::string release, read_file(folder / "release"));
    GB_TRY_ASSIGN(std::string version, read_file(folder / "version"));
    GB_TRY_ASSIGN(std::string order, read_file(kernel.modules_dir / "order"));
    kernel.release = trimmed(std::move(release));
    kernel.version = trimmed(std::move(version));
    for (std::size_t at = 0; at < order.size();) {
        std::size_t end = std::min(order.find('\n', at), order.size());
        kernel.modules.push_back(order.substr(at, end - at));
        at = end + 1;
    }
    std::error_code ec;
    if (!fs::exists(kernel.vmlinuz, ec))
        return fail(ErrorCode::not_found, fmt::format("no {}", kernel.vmlinuz.string()));
    return kernel;
}

Result<GuestKernel> download(const fs::path& folder, const fs::path& work, Reporter& reporter) {
    GB_TRY_ASSIGN(PrivateApt apt, PrivateApt::make(work / "apt"));
    for (const std::string& option : host_apt_options()) {
        // `name "value";` of apt.conf becomes name=value.
        std::size_t space = option.find(' ');
        apt.settings.push_back(option.substr(0, space) + "=" +
                               option.substr(space + 2, option.size() - space - 4));
    }
    RunOptions options;
    options.timeout = {std::chrono::minutes(10), std::chrono::hours(6)};
    options.extra_env = {"LC_ALL=C.UTF-8"};
    options.cwd = work.string();
    Reporter::Span find{.step = "find guest kernel", .from = 0, .to = 0.4};
    GB_TRY(reporter.run(find, apt.command("apt-get", {"update"}), options));
    GB_TRY_ASSIGN(
        RunOutput shown,
        reporter.run(find, apt.command("apt-cache", {"show", "--no-all-versions", kMetaPackage}), options));
    GB_TRY_ASSIGN(KernelPackage package, parse_kernel_package(shown.out));
    const fs::path result = folder / package.version;
    std::error_code ec;
    if (!fs::exists(result, ec)) {
        std::string exact = fmt::format("{}={}", package.name, package.version);
        GB_TRY(reporter.run({.step = "download guest kernel", .from = 0.4, .to = 0.8},
                            apt.command("apt-get", {"download", exact}), options));
        GB_TRY_ASSIGN(fs::path deb, find_file(work, package.name + "_"));
        Reporter::Span unpack{.step = "unpack guest kernel", .from = 0.8, .to = 1};
        GB_TRY(reporter.run(unpack, {"dpkg-deb", "-x", deb.string(), (work / "package").string()}, options));
        GB_TRY(arrange(work / "package", work / "kernel", package.version));
        if (::rename((work / "kernel").c_str(), result.c_str()) != 0)
            return fail_errno(fmt::format("rename to {}", result.string()));
    }
    GB_TRY(write_file_atomic(folder / "current", package.version + "\n"));
    return open_kernel(result);
}

}  // namespace

Result<KernelPackage> parse_kernel_package(std::string_view text) {
    // Depends: linux-image-6.1.0-57-cloud-amd64 (= 6.1.192-3)
    constexpr std::string_view kField = "\nDepends: ";
    std::string padded = fmt::format("\n{}", text);
    std::size_t at = padded.find(kField);
    if (at != std::string::npos) {
        std::string_view line = std::string_view(padded).substr(at + kField.size());
        line = line.substr(0, line.find('\n'));
        std::size_t space = line.find(" (= ");
        std::size_t close = line.find(')');
        if (line.starts_with("linux-image-") && space < close && close != std::string_view::npos)
            return KernelPackage{std::string(line.substr(0, space)),
                                 std::string(line.substr(space + 4, close - space - 4))};
    }
    return fail(ErrorCode::not_found, fmt::format("the Debian archive names no kernel for {}", kMetaPackage));
}

Result<GuestKernel> cached_kernel(const fs::path& cache) {
    GB_TRY_ASSIGN(std::string version, read_file(cache / "kernel/current"));
    return open_kernel(cache / "kernel" / trimmed(std::move(version)));
}

Result<GuestKernel> prepare_kernel(const fs::path& cache, const ProgressFn& progress, KernelUpdate update) {
    if (update == KernelUpdate::use_cached)
        if (auto kernel = cached_kernel(cache)) return kernel;
    Reporter reporter(progress);
    reporter.report({.step = "wait for other builds"});
    GB_TRY_ASSIGN(BuildFolder work, BuildFolder::make(cache / "kernel", "download"));
    if (update == KernelUpdate::use_cached)
        if (auto kernel = cached_kernel(cache)) return kernel;
    auto kernel = download(cache / "kernel", work.path(), reporter);
    if (!kernel) return std::unexpected(kernel.error().with("guest kernel"));
    return kernel;
}

}  // namespace gb::image
