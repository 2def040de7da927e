// SPDX-License-Identifier: Apache-2.0
// One QEMU process in its jail. Made by MicrovmEngine.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include "engine/console.h"
#include "engine/engine.h"
#include "engine/jail.h"
#include "engine/memory_delta.h"
#include "engine/microvm/qmp_client.h"

namespace gb::engine {

// Command lists that start and load; data, so that one round trip serves for a whole restore.
std::vector<QmpCommand> qmp_start_commands(bool incoming);
std::vector<QmpCommand> qmp_load_commands(int state_fd);

// That a VMM is at work, whether or not it answers.
Signs vmm_signs(pid_t pid);

class MicrovmMachine final : public Machine {
  public:
    struct Parts {
        JailedProcess process;
        QmpClient monitor;
        std::unique_ptr<ConsoleTail> console;
        std::unique_ptr<ConsoleTail> log;
        MemorySpec memory;
        DiskSpec disk;
    };
    explicit MicrovmMachine(Parts parts) : parts_(std::move(parts)) {}
    ~MicrovmMachine() override { (void)kill(); }

    // For the engine, once: waits until QEMU is ready. With a state: loads it in the same round trip.
    Status start(bool incoming, const std::filesystem::path& state, AfterLoad after);

    [[nodiscard]] pid_t pid() const override { return parts_.process.pid(); }
    [[nodiscard]] int pidfd() const override { return parts_.process.pidfd(); }
    [[nodiscard]] bool alive() const override { return parts_.process.alive(); }
    std::optional<ExitStatus> wait(std::chrono::milliseconds limit) override {
        return parts_.process.wait(limit);
    }
    // For the engine, once, instead of start: makes sure that the guest of a VMM that runs already does too.
    Status take_over();

    Status load(const SavedFiles& files, AfterLoad after) override;
    Status stop() override;
    Status cont() override;
    void files_moved(const std::filesystem::path& disk, const std::filesystem::path& memory_image) override {
        std::lock_guard lock(mutex_);
        parts_.disk.image = disk;
        parts_.memory.image = memory_image;
    }
    Status set_cpu_weight(unsigned weight) override { return parts_.process.set_cpu_weight(weight); }
    bool retry_full_disk() override;
    Result<CaptureResult> capture(const std::filesystem::path& state) override;
    Result<SaveResult> suspend(const SavedFiles& files, AfterSave after, const Commit& commit) override;
    Status kill() override { return parts_.process.kill(); }
    [[nodiscard]] Result<ProcessTrace> trace() const override { return parts_.process.trace(); }
    void leave() override { parts_.process.leave(); }
    [[nodiscard]] std::string console_tail() const override { return parts_.console->text(); }
    [[nodiscard]] std::uint64_t console_bytes() const override { return parts_.console->bytes(); }
    [[nodiscard]] bool wait_console(std::string_view needle, std::chrono::milliseconds limit) const override {
        return parts_.console->wait_for(needle, limit);
    }
    [[nodiscard]] std::string vmm_log() const override { return parts_.log->text(); }
    [[nodiscard]] Result<std::uint64_t> private_bytes() const override {
        return parts_.process.private_bytes();
    }
    [[nodiscard]] CgroupUsage usage() const override { return parts_.process.usage(); }

  private:
    Result<std::string> run_state(const Patience& patience);
    Status finish_load(AfterLoad after);
    Status load_memory(const SavedFiles& files);
    Result<SaveResult> save(const SavedFiles& files, AfterSave after, const Commit& commit);
    Result<std::string> save_device_state();
    Result<MemoryBase> memory_base() const;
    Result<std::string> save_state();
    Status seal() const;
    // The error with what QEMU printed before it went, if it went; `ending`: it is about to.
    Error explain(Error error, bool ending = false);

    Parts parts_;
    std::mutex mutex_;  // of the monitor
};

}  // namespace gb::engine
