// SPDX-License-Identifier: Apache-2.0
// Archives in the "newc" form of cpio, the one the kernel unpacks as an initramfs
// (Documentation/driver-api/early-userspace/buffer-format.rst). Pure: nodes need no file system and no
// privileges.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gb::image {

// Everything belongs to root and is dated 1970, so equal content gives equal bytes. Paths have no leading
// slash; folders must be added before what they hold.
class CpioArchive {
  public:
    void add_folder(std::string_view path, unsigned mode = 0755);
    void add_file(std::string_view path, std::string_view content, unsigned mode = 0644);
    void add_char_device(std::string_view path, unsigned major, unsigned minor, unsigned mode = 0600);

    [[nodiscard]] std::string finish() &&;

  private:
    void add(std::string_view path, std::uint32_t mode, std::string_view content, unsigned major,
             unsigned minor);

    std::string out_;
    std::uint32_t next_inode_ = 1;
};

}  // namespace gb::image
