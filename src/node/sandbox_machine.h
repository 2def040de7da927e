// One running sandbox on this machine: its slot, its VMM, its folder, its decision log. Everything it holds on the
// host is released by end() or the destructor.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "net/decision_log.h"
#include "net/slot.h"
#include "net/slot_pool.h"
#include "node/machinery.h"
#include "node/node.h"
#include "node/template_store.h"

namespace gb {

class SandboxMachine {
  public:
    struct Parts {
        const Machinery& machinery;
        net::SlotPool& slots;
        std::filesystem::path sandboxes;  // the folder that holds one folder for each sandbox
    };

    // Blocks until the guest has taken its identity. On failure nothing is left.
    static Result<std::shared_ptr<SandboxMachine>> start(const Parts& parts, const StoredTemplate& from,
                                                         const SandboxSpec& spec, net::EgressPolicy policy);
    ~SandboxMachine();

    // Kills the VMM, removes files and slot. Idempotent; blocks.
    Status end();

    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] const Manifest& manifest() const { return manifest_; }
    [[nodiscard]] std::size_t slot_number() const { return slot_number_; }
    [[nodiscard]] int pidfd() const { return machine_->pidfd(); }
    [[nodiscard]] int decision_fd() const { return slot_->decision_fd(); }  // only before end()
    Result<UniqueFd> socket() const;  // not_found once it has ended
    [[nodiscard]] std::string last_words() const;  // why it may have ended, from its console
    [[nodiscard]] Result<SandboxUsage> usage() const;

    // Moves what waits in the kernel into the log.
    void record_decisions();
    void record(const net::Decision& decision);  // one that was made outside of the slot
    Result<std::vector<std::string>> decisions(std::size_t limit);

  private:
    SandboxMachine(const Parts& parts, std::string id, Manifest manifest)
        : parts_(parts), id_(std::move(id)), manifest_(std::move(manifest)), folder_(parts.sandboxes / id_) {}
    void record_locked();
    Status build(const StoredTemplate& from, const SandboxSpec& spec, net::EgressPolicy policy);

    Parts parts_;
    std::string id_;
    Manifest manifest_;
    std::filesystem::path folder_;
    std::unique_ptr<engine::Machine> machine_;
    std::size_t slot_number_ = 0;
    mutable std::mutex mutex_;  // of the two below
    std::unique_ptr<net::Slot> slot_;
    std::optional<net::DecisionLog> log_;
    std::mutex end_mutex_;
    bool ended_ = false;
};

}  // namespace gb
