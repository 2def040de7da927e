// SPDX-License-Identifier: Apache-2.0
#include "image/ext4.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "base/subprocess.h"

namespace gb::image {

std::vector<std::string> ext4_options() {
    // Features are named one by one, not relative to the defaults of the host's /etc/mke2fs.conf.
    // - No journal: it would double metadata writes into the overlay for nothing. A sandbox's disk outlives
    // its
    //   machine only after the file system was frozen or together with its memory, never after a crash.
    // - No checksums: the host keeps those, and without hardware help they cost time on every metadata block.
    // Their
    //   absence also means that all inode tables are ready and no lazy initialisation writes at run time.
    // - Extended attributes are always on in ext4 and keep the metadata of files.
    return {
        "-t",
        "ext4",
        "-O",
        "none,ext_attr,dir_index,filetype,extent,64bit,flex_bg,sparse_super,large_file,huge_file,dir_nlink,"
        "extra_isize",
        "-b",
        "4096",
        "-I",
        "256",
        "-i",
        "16384",
        "-m",
        "0",
        "-L",
        "glovebox",
        "-E",
        "lazy_itable_init=0,root_owner=0:0"};
}

Status make_ext4(const std::filesystem::path& tree, const std::filesystem::path& image, int size_mib,
                 Reporter& reporter, const Reporter::Span& span) {
    std::vector<std::string> argv = {"mke2fs", "-q", "-F"};
    for (const std::string& option : ext4_options()) argv.push_back(option);
    argv.insert(argv.end(), {"-d", tree.string(), image.string(), fmt::format("{}M", size_mib)});
    RunOptions options;
    options.timeout = {std::chrono::minutes(10), std::chrono::hours(6)};
    if (auto output = reporter.run(span, argv, options); !output) {
        ::unlink(image.c_str());
        if (output.error().message.find("Could not allocate") != std::string::npos)
            return fail(ErrorCode::too_large,
                        fmt::format("the root file system does not fit into {} MiB", size_mib));
        return std::unexpected(std::move(output).error());
    }
    GB_TRY_ASSIGN(UniqueFd fd, open_file(image, O_RDONLY));
    if (::fsync(fd.get()) != 0) return fail_errno(fmt::format("fsync {}", image.string()));
    return {};
}

}  // namespace gb::image
