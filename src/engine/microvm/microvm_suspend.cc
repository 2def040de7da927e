// SPDX-License-Identifier: Apache-2.0
// Saving a machine whose memory is a private mapping, and bringing its memory back.
//
// QEMU's ordinary migration leaves out only memory that is mapped shared, so here the state of the devices is
// saved alone, by a command that was made for Xen and needs none, and the pages are read from outside. The
// state is loaded by the ordinary way: xen-load-devices-state ends QEMU 7.2 with an assertion.
#include <chrono>

#include <sys/mman.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/file.h"
#include "engine/microvm/limits.h"
#include "engine/microvm/microvm_machine.h"
#include "engine/process_memory.h"

namespace gb::engine {
namespace json = boost::json;
namespace {

using namespace std::chrono_literals;

constexpr Patience kSaveLimit{60s, 10min};
constexpr int kStateFdset = 7;  // any number: there is one set, and only while it is used

// The jail has no file system to write to. A file in memory can be given to QEMU; what QEMU writes counts
// against the limit of its own control group.
struct StateFile {
    UniqueFd read, write;
    static Result<StateFile> make() {
        StateFile out;
        out.read.reset(::memfd_create("state", MFD_CLOEXEC));
        if (!out.read) return fail_errno("make a file in memory");
        // QEMU takes a descriptor of a set only when it is open in just the way that is asked for.
        GB_TRY_ASSIGN(out.write, open_file(fmt::format("/proc/self/fd/{}", out.read.get()), O_WRONLY));
        return out;
    }
    [[nodiscard]] Result<std::string> contents() const {
        struct stat st{};
        if (::fstat(read.get(), &st) != 0) return fail_errno("size of QEMU's state");
        if (st.st_size == 0) return fail(ErrorCode::internal, "QEMU has written no state");
        if (static_cast<std::size_t>(st.st_size) > kMaxStateBytes) return fail(ErrorCode::too_large, "QEMU's state does not end");
        std::string out(static_cast<std::size_t>(st.st_size), '\0');
        std::size_t got = 0;
        while (got < out.size()) {
            const ssize_t n =
                ::pread(read.get(), out.data() + got, out.size() - got, static_cast<off_t>(got));
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return fail_errno(n < 0 ? errno : EIO, "read QEMU's state");
            got += static_cast<std::size_t>(n);
        }
        return out;
    }
};

}  // namespace

Result<MemoryBase> MicrovmMachine::memory_base() const {
    if (parts_.memory.mapping != MemoryMapping::copy_on_write || parts_.memory.image_id.empty())
        return fail(
            ErrorCode::failed_precondition,
            "only a machine whose memory is a private mapping of a named image has memory to save or load");
    struct stat st{};
    if (::stat(parts_.memory.image.c_str(), &st) != 0)
        return fail_errno(fmt::format("memory image {}", parts_.memory.image.string()));
    return MemoryBase{parts_.memory.image_id, static_cast<std::uint64_t>(st.st_size)};
}

Result<std::string> MicrovmMachine::save_device_state() {
    GB_TRY_ASSIGN(StateFile file, StateFile::make());
    json::object add{{"fdset-id", kStateFdset}};
    json::object save{{"filename", fmt::format("/dev/fdset/{}", kStateFdset)}, {"live", false}};
    Status saved = parts_.monitor.call_all({{"add-fd", add, file.write.get()},
                                            {"xen-save-devices-state", std::move(save), -1},
                                            {"remove-fd", add, -1}},
                                           kSaveLimit);
    if (!saved) return std::unexpected(saved.error());
    return file.contents();
}

Result<SaveResult> MicrovmMachine::save(const SavedFiles& files, AfterSave after, const Commit& commit) {
    SaveResult result;
    GB_TRY_ASSIGN(const MemoryBase base, memory_base());
    const std::int64_t start = monotonic_ms();
    // A stop waits for the disk's requests and writes QEMU's cached metadata to the file.
    GB_TRY(parts_.monitor.call_all({{"stop", {}, -1}}, kStopLimit));
    GB_TRY_ASSIGN(const std::string state, save_device_state());
    result.state_bytes = state.size();
    result.state_sha256 = sha256_hex(state);

    GB_TRY_ASSIGN(DeltaWriter delta, DeltaWriter::create(files.memory_delta, base));
    GB_TRY_ASSIGN(const ProcessMemory memory, ProcessMemory::find(pid(), parts_.memory.image, base.bytes));
    GB_TRY_ASSIGN(const std::vector<PageRun> pages, memory.private_pages());
    GB_TRY(memory.read(pages, [&](std::uint64_t first, std::span<const std::byte> contents) {
        return delta.add(first, contents);
    }));
    GB_TRY_ASSIGN(const DeltaStats stats, delta.finish());
    result.memory_bytes = stats.bytes;
    result.data_pages = stats.data_pages;
    result.zero_pages = stats.zero_pages;
    result.memory_checksum = stats.checksum;

    auto publish = [&]() -> Status {
        if (after == AfterSave::run_unsynced) {
            GB_TRY(delta.publish(DeltaWriter::Sync::no));
            GB_TRY_ASSIGN(const UniqueFd file, open_file(files.state, O_WRONLY | O_CREAT | O_TRUNC));
            return write_all(file.get(), state);
        }
        GB_TRY(delta.publish(DeltaWriter::Sync::yes));
        GB_TRY(write_file_atomic(files.state, state, 0600));
        return sync_path(parts_.disk.image);
    };
    if (after == AfterSave::end) GB_TRY(publish());
    if (commit) GB_TRY(commit(result));
    if (after != AfterSave::end) {
        // The guest need not wait for the disk.
        GB_TRY(parts_.monitor.call_all({{"cont", {}, -1}}, kCommandLimit));
        result.stopped_for = std::chrono::milliseconds(monotonic_ms() - start);
        GB_TRY(publish());
        return result;
    }
    result.stopped_for = std::chrono::milliseconds(monotonic_ms() - start);
    return result;
}

Result<SaveResult> MicrovmMachine::suspend(const SavedFiles& files, AfterSave after, const Commit& commit) {
    std::lock_guard lock(mutex_);
    auto saved = save(files, after, commit);
    if (!saved) {
        Error error = explain(saved.error()).with("save the machine");
        auto running = parts_.monitor.call({"cont", {}, -1}, kCommandLimit);
        // A machine that neither runs nor is saved must not look alive.
        if (!running) {
            error.message += "; it cannot go on either: " + running.error().message;
            (void)kill();
        }
        return std::unexpected(std::move(error));
    }
    // Saved is saved: a VMM that does not want to end cannot change its files' contents any more, being
    // stopped.
    if (after == AfterSave::end) (void)kill();
    return saved;
}

Status MicrovmMachine::load_memory(const SavedFiles& files) {
    if (files.memory_delta.empty()) return {};
    GB_TRY_ASSIGN(const MemoryBase base, memory_base());
    GB_TRY_ASSIGN(DeltaReader delta, DeltaReader::open(files.memory_delta, base));
    GB_TRY_ASSIGN(const ProcessMemory memory, ProcessMemory::find(pid(), parts_.memory.image, base.bytes));
    // Blocks go in as they are read; what turns out to be damaged later ends the machine, whose guest has not
    // run.
    for (;;) {
        GB_TRY_ASSIGN(const std::optional<DeltaBlock> block, delta.next());
        if (!block) break;
        GB_TRY(memory.write(*block));
    }
    if (files.memory_checksum != 0 && delta.stats().checksum != files.memory_checksum)
        return fail(ErrorCode::data_loss, "the saved memory is not the one that belongs to this state");
    return {};
}

}  // namespace gb::engine
