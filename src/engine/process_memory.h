// SPDX-License-Identifier: Apache-2.0
// The memory of a machine from outside of its VMM: where the guest's memory lies in the process, which of its
// pages are the process's own, reading and writing them. Needs root (ptrace access to the process).
//
// The VMM is not trusted: a guest that has taken it over may map whatever it likes. It can only spoil its own
// memory: addresses are used on that process alone, and sizes are checked against those of the image.
// Sources: proc_pid_maps(5), proc_pid_pagemap(5), process_vm_readv(2), Linux
// Documentation/admin-guide/mm/pagemap.rst.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "engine/memory_delta.h"

namespace gb::engine {

// One line of /proc/<pid>/maps that maps a file.
struct FileMapping {
    std::uint64_t start = 0, end = 0;  // addresses
    std::uint64_t offset = 0;          // in the file
    bool is_private = false;
};
// Only lines with a file; data_loss when a line is none of this format.
Result<std::vector<FileMapping>> parse_maps(std::string_view text);

// The address at which pieces of one file, in ascending order, map all of its `bytes` privately in one row.
// The kernel splits a mapping where parts of it have other advice.
Result<std::uint64_t> join_mapping(std::span<const FileMapping> pieces, std::uint64_t bytes);

struct PageRun {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    bool operator==(const PageRun&) const = default;
};

// Adds the pages that entries of /proc/<pid>/pagemap show as private copies, the first entry being that of
// `first_page`, to ascending runs.
void add_private_pages(std::span<const std::uint64_t> entries, std::uint64_t first_page,
                       std::vector<PageRun>& runs);

class ProcessMemory {
  public:
    // The private mapping of `image` in process `pid`; not_found when there is none, failed_precondition when
    // it is not whole. The process must not end or change its mappings while this is used.
    static Result<ProcessMemory> find(pid_t pid, const std::filesystem::path& image, std::uint64_t bytes);

    // Pages of the mapping that the process has copied, that is written, in ascending order. The time follows
    // what is mapped at all; the contents are not looked at.
    [[nodiscard]] Result<std::vector<PageRun>> private_pages() const;
    // The same without the ioctl of Linux 6.7.
    [[nodiscard]] Result<std::vector<PageRun>> private_pages_from_entries() const;

    // Hands out the contents of these runs in order, in pieces of at most 1 MiB.
    using Sink = std::function<Status(std::uint64_t first_page, std::span<const std::byte> contents)>;
    Status read(std::span<const PageRun> runs, const Sink& sink) const;

    Status write(const DeltaBlock& block) const;

  private:
    ProcessMemory(pid_t pid, std::uint64_t address, std::uint64_t bytes)
        : pid_(pid), address_(address), bytes_(bytes) {}
    [[nodiscard]] Result<std::vector<PageRun>> scan(int pagemap) const;

    pid_t pid_;
    std::uint64_t address_;
    std::uint64_t bytes_;
};

}  // namespace gb::engine
