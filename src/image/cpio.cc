// SPDX-License-Identifier: Apache-2.0
#include "image/cpio.h"

#include <utility>

#include <sys/stat.h>

#include <fmt/format.h>

namespace gb::image {

void CpioArchive::add(std::string_view path, std::uint32_t mode, std::string_view content, unsigned major,
                      unsigned minor) {
    const bool trailer = path == "TRAILER!!!";
    const std::uint32_t fields[] = {
        trailer ? 0 : next_inode_++,
        mode,
        0,  // uid
        0,  // gid
        S_ISDIR(mode) ? 2U : 1U,
        0,  // mtime
        static_cast<std::uint32_t>(content.size()),
        0,  // major and minor of the device that the file lies on
        0,
        major,
        minor,
        static_cast<std::uint32_t>(path.size() + 1),
        0,  // check sum, not used in this form
    };
    out_ += "070701";
    for (std::uint32_t field : fields) out_ += fmt::format("{:08X}", field);
    auto pad = [&] { out_.resize((out_.size() + 3) / 4 * 4); };
    out_ += path;
    out_.push_back('\0');
    pad();
    out_ += content;
    pad();
}

void CpioArchive::add_folder(std::string_view path, unsigned mode) {
    add(path, S_IFDIR | mode, "", 0, 0);
}

void CpioArchive::add_file(std::string_view path, std::string_view content, unsigned mode) {
    add(path, S_IFREG | mode, content, 0, 0);
}

void CpioArchive::add_char_device(std::string_view path, unsigned major, unsigned minor, unsigned mode) {
    add(path, S_IFCHR | mode, "", major, minor);
}

std::string CpioArchive::finish() && {
    add("TRAILER!!!", 0, "", 0, 0);
    out_.resize((out_.size() + 511) / 512 * 512);
    return std::move(out_);
}

}  // namespace gb::image
