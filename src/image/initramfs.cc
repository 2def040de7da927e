// SPDX-License-Identifier: Apache-2.0
#include "image/initramfs.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"
#include "base/subprocess.h"
#include "image/cpio.h"

namespace gb::image {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kBin = "glovebox/bin";  // glovebox-init copies it to /run/glovebox/bin

Status check(const std::vector<GuestFile>& files) {
    for (const GuestFile& file : files) {
        fs::path path(file.path);
        if (path.empty() || path.is_absolute() || path != path.lexically_normal() || *path.begin() == "..")
            return fail(ErrorCode::invalid_argument,
                        fmt::format("'{}' is not a path inside the guest", file.path));
    }
    if (std::ranges::find(files, "glovebox-agent", &GuestFile::path) == files.end())
        return fail(ErrorCode::invalid_argument, "an initramfs needs glovebox-agent");
    return {};
}

// Adds a file after the folders that lead to it.
class Writer {
  public:
    void add(const fs::path& path, std::string_view content, unsigned mode) {
        fs::path folder;
        for (const fs::path& part : path.parent_path()) {
            folder /= part;
            if (folders_.insert(folder.string()).second) archive_.add_folder(folder.string());
        }
        archive_.add_file(path.string(), content, mode);
    }
    CpioArchive& archive() { return archive_; }

  private:
    CpioArchive archive_;
    std::set<std::string> folders_;
};

}  // namespace

Status build_initramfs(const GuestKernel& kernel, const fs::path& init, const std::vector<GuestFile>& files,
                       const fs::path& out) {
    GB_TRY(check(files));
    Writer writer;
    for (const char* folder : {"dev", "proc", "sys", "newroot"}) writer.archive().add_folder(folder);
    writer.archive().add_char_device("dev/console", 5,
                                     1);  // the kernel opens it for /init before devtmpfs exists
    GB_TRY_ASSIGN(std::string program, read_file(init));
    writer.add("init", program, 0755);
    std::string order;
    for (const std::string& name : kernel.modules) {
        GB_TRY_ASSIGN(std::string content, read_file(kernel.modules_dir / name));
        writer.add(fs::path("modules") / name, content, 0644);
        order += name + "\n";
    }
    writer.add("modules/order", order, 0644);
    std::map<std::string, fs::path> sorted;
    for (const GuestFile& file : files) sorted[file.path] = file.source;
    for (const auto& [path, source] : sorted) {
        GB_TRY_ASSIGN(std::string content, read_file(source));
        writer.add(fs::path(kBin) / path, content, ::access(source.c_str(), X_OK) == 0 ? 0755 : 0644);
    }

    // lz4 in its old frame, the only one the kernel reads; it decompresses quickest, which counts when
    // emulated.
    RunOptions options;
    options.stdin_data = std::move(writer.archive()).finish();
    options.max_output = std::size_t{1} << 30;
    GB_TRY_ASSIGN(RunOutput packed, run_checked({"lz4", "-l", "-9", "-c"}, options));
    GB_TRY(make_dirs(out.parent_path()));
    return write_file_atomic(out, packed.out);
}

Result<std::vector<GuestFile>> guest_files_in(const fs::path& folder, std::string_view prefix) {
    std::vector<GuestFile> out;
    std::error_code ec;
    fs::recursive_directory_iterator it(folder, ec);
    for (; !ec && it != fs::recursive_directory_iterator(); it.increment(ec))
        if (it->is_regular_file())
            out.push_back({it->path(), (fs::path(prefix) / it->path().lexically_relative(folder)).string()});
    if (ec) return fail_errno(ec.value(), fmt::format("list {}", folder.string()));
    std::ranges::sort(out, {}, &GuestFile::path);
    return out;
}

}  // namespace gb::image
