// SPDX-License-Identifier: Apache-2.0
// What runs a sandbox: an engine makes machines, a machine is one sandbox's kernel and everything in it.
//
// All calls block and return when the thing is done; the node makes them on worker threads. Calls for
// different machines may run at the same time; calls for one machine exclude each other, except kill(), which
// any thread may call at any time and which ends the wait of the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/jail.h"

namespace gb::engine {

enum class Accelerator { kvm, tcg };  // hardware virtualisation; software emulation
constexpr std::string_view accelerator_name(Accelerator accelerator) {
    return accelerator == Accelerator::kvm ? "kvm" : "tcg";
}

enum class DiskFormat { raw, qcow2 };

struct DiskSpec {
    std::filesystem::path image;  // written by the machine; its owner becomes the jail's user
    DiskFormat format = DiskFormat::qcow2;
    // Raw, read-only, shared with others. Must be set for qcow2 (see overlay.h), empty for raw.
    std::filesystem::path backing;
};

enum class MemoryMapping {
    shared,         // the image becomes the memory: for a machine that will be captured
    copy_on_write,  // the image is a captured one: read, shared with other machines, never written
};

struct MemorySpec {
    std::filesystem::path image;  // shared: made here, of memory_mib, replaced if it is there
    MemoryMapping mapping = MemoryMapping::shared;
    // What names the bytes of a captured image, wherever it lies: saved memory belongs to it. Needed to suspend and
    // to restore what was suspended.
    std::string image_id;
};

// Needed to boot. A restored machine has its kernel in its memory.
struct KernelSpec {
    std::filesystem::path image;
    std::filesystem::path initrd;
    std::string command_line;
};

// A machine and the one it was captured from must agree in everything but paths, jail, tap and memory
// mapping.
struct MachineSpec {
    JailSpec jail;  // limits that are 0 are the engine's choice
    unsigned cpu_count = 1;
    unsigned memory_mib = 512;
    KernelSpec kernel;
    DiskSpec disk;
    MemorySpec memory;
    UniqueFd tap;     // its queue, opened in the jail's network namespace; none: a machine without network
    std::string mac;  // required with a tap
    // Where the monitor's socket is bound, in a folder of root's that may have a long name. Empty: nowhere,
    // and the machine cannot be adopted.
    std::filesystem::path monitor;
    Accelerator accelerator = Accelerator::tcg;
    std::string cpu_model;  // empty: the engine's choice for the accelerator
};

enum class AfterLoad { stay_paused, run };
enum class AfterSave {
    end,  // the machine ends: a pause
    run,  // it goes on: a snapshot of a running machine
    run_unsynced,  // the same, for files that need not outlive the host: they are not synced
};

// What a machine is loaded from.
struct SavedFiles {
    std::filesystem::path state;         // of devices and processors
    std::filesystem::path memory_delta;  // see memory_delta.h; empty: the memory image alone, as captured
    // Of the delta, as SaveResult said it. 0: any.
    std::uint32_t memory_checksum = 0;

    SavedFiles(std::filesystem::path state_file, std::filesystem::path delta = {}, std::uint32_t checksum = 0)
        : state(std::move(state_file)), memory_delta(std::move(delta)), memory_checksum(checksum) {}
};

struct SaveResult {
    std::uint64_t state_bytes = 0;
    std::uint64_t memory_bytes = 0;  // of the delta's file
    std::uint64_t data_pages = 0;    // of 4 KiB, with content
    std::uint64_t zero_pages = 0;    // written, but zero: no content in the file
    std::uint32_t memory_checksum = 0;
    std::string state_sha256;                 // hexadecimal
    std::chrono::milliseconds stopped_for{};  // the guest, until it ended or went on
};

struct CaptureResult {
    std::uint64_t state_bytes = 0;
    std::chrono::milliseconds stopped_for{};  // from the stop of the guest to its last byte of state
};

class Machine {
  public:
    virtual ~Machine() = default;  // kills

    [[nodiscard]] virtual pid_t pid() const = 0;
    // Readable when the machine has ended, for whatever reason: its guest halted, rebooted or panicked, its
    // VMM died, somebody killed it. Borrowed; valid as long as the machine.
    [[nodiscard]] virtual int pidfd() const = 0;
    [[nodiscard]] virtual bool alive() const = 0;
    virtual std::optional<ExitStatus> wait(std::chrono::milliseconds limit) = 0;

    // For a machine that Engine::prepare made: loads the memory that differs from the image, and the state. Ends the
    // machine when it fails. data_loss: the files are damaged; failed_precondition: they belong to another image.
    virtual Status load(const SavedFiles& files, AfterLoad after) = 0;

    virtual Status stop() = 0;  // halts the processors; memory, disk and connections stay
    virtual Status cont() = 0;

    // Its files have other names from now on. The running machine does not mind; saving it does.
    virtual void files_moved(const std::filesystem::path& disk, const std::filesystem::path& memory_image) = 0;
    // Its share of the processors among others, 1 to 10000; 100 is what it gets unless its limits say otherwise.
    virtual Status set_cpu_weight(unsigned weight) = 0;
    // A guest that finds the host's disk full is stopped, its request kept. Lets one that was stopped so try
    // again, and says whether it was. For a timer: costs nothing while nothing has happened, and does nothing
    // while another call is under way.
    virtual bool retry_full_disk() = 0;

    // Ends this machine and leaves its memory image, its disk and `state` as a template's: synced, owned by
    // root, read-only. failed_precondition unless the memory is mapped shared.
    virtual Result<CaptureResult> capture(const std::filesystem::path& state) = 0;

    // Saves a machine whose memory is a private mapping: its state and the pages it has written, each file synced
    // under its own name, and its disk synced. Pages are all that differ from the image, also those that were loaded
    // from an earlier delta. `commit`, when given, is called with the guest still stopped, as soon as all of that is
    // saved (a machine that goes on: not synced yet); it may copy the disk, or write down that the machine is saved, and its
    // error is this call's. On any error the machine runs on, and the files may be there or not.
    using Commit = std::function<Status(const SaveResult&)>;
    virtual Result<SaveResult> suspend(const SavedFiles& files, AfterSave after, const Commit& commit) = 0;

    // Ends the machine at once and takes down everything it had on this host. Idempotent.
    virtual Status kill() = 0;

    // What Engine::adopt needs to find it again; nothing of it is secret. While it lives.
    [[nodiscard]] virtual Result<ProcessTrace> trace() const = 0;
    // Gives the machine up and lets it run on, for an engine to come. Nothing but the destructor may be
    // called then.
    virtual void leave() = 0;

    [[nodiscard]] virtual std::string console_tail() const = 0;  // at most 64 KiB; raw bytes of the guest
    [[nodiscard]] virtual std::uint64_t console_bytes() const = 0;  // all that the guest has printed so far
    [[nodiscard]] virtual bool wait_console(std::string_view needle,
                                            std::chrono::milliseconds limit) const = 0;
    [[nodiscard]] virtual std::string vmm_log() const = 0;  // what the VMM itself printed, at most 16 KiB
    [[nodiscard]] virtual Result<std::uint64_t> private_bytes() const = 0;
    [[nodiscard]] virtual CgroupUsage usage() const = 0;
};

class Engine {
  public:
    virtual ~Engine() = default;

    // Starts from the kernel.
    virtual Result<std::unique_ptr<Machine>> boot(MachineSpec spec) = 0;

    // Starts a machine that waits for a state: the larger part of a restore, done ahead of time.
    virtual Result<std::unique_ptr<Machine>> prepare(MachineSpec spec) = 0;

    // prepare and load in one.
    virtual Result<std::unique_ptr<Machine>> restore(MachineSpec spec, const SavedFiles& files,
                                                     AfterLoad after) = 0;

    // Takes over a machine that an earlier engine of the same instance started with `spec` (tap and kernel
    // are not looked at), and lets its guest run if it was stopped. An error means that it cannot be: it is
    // of another VMM, never got as far as running, or does not answer. Then nothing of it is left.
    virtual Result<std::unique_ptr<Machine>> adopt(MachineSpec spec, const ProcessTrace& trace) = 0;

    // Whether such a machine is there: the process that was meant, in its group, in this engine's VMM. Quick, and the
    // machine does not notice; whether it answers only adopt says.
    [[nodiscard]] virtual Status find(const MachineSpec& spec, const ProcessTrace& trace) = 0;
};

}  // namespace gb::engine
