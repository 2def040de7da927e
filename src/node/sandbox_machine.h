// SPDX-License-Identifier: Apache-2.0
// One running sandbox on this machine: its slot, its way out by name, its VMM, its folder, its decision log.
// Everything it holds on the host is released by end() or the destructor, except that the files of one that
// was paused stay.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stall.h"
#include "egress/service.h"
#include "engine/engine.h"
#include "net/decision_log.h"
#include "net/slot.h"
#include "net/slot_pool.h"
#include "node/machinery.h"
#include "node/node.h"
#include "node/paused_sandbox.h"
#include "node/template_store.h"

namespace gb {

// What a client asked of the network, as a policy or an error of net::parse_policy.
Result<net::EgressPolicy> policy_of(const NetworkRequest& request);

class SandboxMachine {
  public:
    struct Parts {
        const Machinery& machinery;
        net::SlotPool& slots;
        std::filesystem::path sandboxes;  // the folder that holds one folder for each sandbox
        std::filesystem::path archive;    // of decision logs, decision_archive.h
        egress::EgressService& egress;
        SecretSource secrets;
    };

    // Blocks until the guest has taken its identity. On failure nothing is left.
    static Result<std::shared_ptr<SandboxMachine>> start(const Parts& parts, const StoredTemplate& from,
                                                         const SandboxSpec& spec, net::EgressPolicy policy);
    // Runs a paused sandbox again; blocks until its guest has taken its identity. On failure it is as paused
    // as before, or paused anew when its guest has run already. data_loss: what was saved is damaged.
    static Result<std::shared_ptr<SandboxMachine>> resume(const Parts& parts, const StoredTemplate& from,
                                                          const PausedSandbox& paused,
                                                          const SandboxSpec& spec, net::EgressPolicy policy);
    // Takes over one that outlived the previous server. On failure nothing is left.
    static Result<std::shared_ptr<SandboxMachine>> adopt(const Parts& parts, const Survivor& survivor);
    // Restores one ahead of time, for nobody: exercised, its processors stopped, its network closed, in a
    // folder that no sandbox can have. Blocks; gives up early when `over` is requested. On failure nothing is
    // left.
    static Result<std::shared_ptr<SandboxMachine>> warm(const Parts& parts, const StoredTemplate& from,
                                                        const std::stop_token& over);
    // Makes a warm one the sandbox of `spec`, at most once; blocks until its guest has taken that identity.
    // On an error it is to be ended.
    Status hand_over(const SandboxSpec& spec, net::EgressPolicy policy);
    ~SandboxMachine();

    // Kills the VMM, removes files and slot, also of one that was paused. Idempotent; blocks.
    Status end();

    // Saves everything in its folder and ends the machine; the slot is given back. On an error it runs on.
    // Blocks.
    Status pause(PauseMode mode);

    // Copies it into an empty folder as a build that sandboxes can start from, all but the manifest, which it
    // answers. It runs on and stands still only while it is copied. Blocks; on an error the folder may hold
    // anything.
    Result<Manifest> snapshot(const SnapshotSpec& spec, const std::filesystem::path& folder);

    // Lets a machine that runs run on for the next server to adopt; nothing but the destructor may be called
    // then. False when none runs. Blocks while it is being paused.
    bool leave();

    [[nodiscard]] const std::string& id() const { return id_; }
    [[nodiscard]] const Manifest& manifest() const { return manifest_; }
    [[nodiscard]] std::size_t slot_number() const { return slot_number_; }
    [[nodiscard]] bool alive() const { return machine_->alive(); }
    [[nodiscard]] int pidfd() const { return machine_->pidfd(); }
    [[nodiscard]] int decision_fd() const { return slot_->decision_fd(); }  // only before end()
    [[nodiscard]] int flow_fd() const { return slot_->flow_fd(); }          // likewise
    Result<UniqueFd> socket() const;                                        // not_found once it has ended
    [[nodiscard]] std::string last_words() const;  // why it may have ended, from its console
    [[nodiscard]] Result<SandboxUsage> usage() const;

    // Replaces the policy; what it denies is cut. On an error everything is as it was. Blocks for about a
    // millisecond, or while the sandbox is saved.
    Status set_network(const NetworkRequest& request);

    [[nodiscard]] Result<net::EgressPolicy> policy() const;  // not_found once it has ended

    // Lets a guest that waits for room on the host's disk try again, and says whether it waited. Never waits
    // long.
    bool retry_full_disk();

    // Moves what waits in the kernel into the log.
    void record_decisions();
    void record(const net::Decision& decision);  // one that was made outside of the slot

  private:
    SandboxMachine(const Parts& parts, std::string id, const StoredTemplate& from)
        : parts_(parts),
          id_(std::move(id)),
          manifest_(from.manifest),
          template_folder_(from.base.empty() ? from.folder : from.base),
          folder_(parts.sandboxes / id_) {
        // What it runs on is its own from now on; only the image below is its template's.
        manifest_.image_build = from.manifest.image_id();
        manifest_.saved.reset();
        manifest_.boots = false;
    }
    void record_locked();
    // The way out by name, for a sandbox that begins to be somebody's.
    Status open_egress(const net::EgressPolicy& policy);
    void close_egress();
    // The one of header rules, made when the first rule comes; none without rules.
    // Has the guest believe it, or nobody, where that is another than before.
    Status trust(const egress::CertificateAuthority* authority, const net::EgressPolicy& before);
    Result<std::shared_ptr<egress::CertificateAuthority>> authority_for(const net::EgressPolicy& policy);
    Status build(const StoredTemplate& from, const SandboxSpec& spec, net::EgressPolicy policy);
    Status wake(const StoredTemplate& from, const PausedSandbox& paused, const SandboxSpec& spec,
                net::EgressPolicy policy);
    Status warm_up(const StoredTemplate& from, const std::stop_token& over);
    // The parts of these.
    Status place(net::EgressPolicy policy);
    // The files that a machine of a template begins with; the template as the machine is to see it.
    Result<StoredTemplate> lay_out(const StoredTemplate& from);
    engine::MachineSpec machine_spec(const StoredTemplate& from);
    // A restored guest that is emulated needs its code translated again before its first answer; loaded hosts
    // are slow.
    static constexpr Patience kIdentityLimit{std::chrono::seconds(30), std::chrono::minutes(10)};
    Status introduce(const SandboxSpec& spec, std::string access_token,
                     const Patience& patience = kIdentityLimit) const;
    Status load(const StoredTemplate& from, const PausedSandbox& paused, const SandboxSpec& spec);
    Status boot(const StoredTemplate& from, const SandboxSpec& spec);
    [[nodiscard]] PausedSandbox describe(PauseMode mode) const;
    [[nodiscard]] bool has_base(const char* file) const;
    Status remember(const NetworkRequest& network) const;  // from here it can be adopted
    Status take_over(const Survivor& survivor);

    Status save(PauseMode mode);
    Result<Manifest> copy_to(const SnapshotSpec& spec, const std::filesystem::path& folder);
    // What its users run, while its memory is saved: it goes on with the next identity, or when it is
    // released.
    void hold();
    void release_users();
    Result<SavedMemory> copy_machine(const SnapshotSpec& spec, const StoredTemplate& copy);
    Status copy_disk(const StoredTemplate& copy);
    // Runs `act` with everything on the disk and the guest stopped. An error lets it go on in any case.
    Status while_frozen(engine::AfterSave after, const std::function<Status()>& act);
    [[nodiscard]] Status check_bootable() const;
    Status save_filesystem();
    Status release();  // VMM and slot; the files stay

    Parts parts_;
    std::string id_;      // until the hand-over its warm name, like its folder's
    std::string cgroup_;  // empty: named as it is
    Manifest manifest_;
    std::filesystem::path template_folder_;
    SandboxFolder folder_;
    std::unique_ptr<engine::Machine> machine_;
    std::size_t slot_number_ = 0;
    std::shared_ptr<egress::CertificateAuthority> authority_;
    mutable std::mutex mutex_;  // of the three below; never held while the egress service is waited for
    std::unique_ptr<egress::EgressPort> port_;
    std::unique_ptr<net::Slot> slot_;
    std::optional<net::DecisionLog> log_;
    std::uint64_t egress_suppressed_ = 0;  // decisions of the egress service without a line, as last seen
    enum class Life { running, paused, left, gone };
    std::mutex end_mutex_;
    Life life_ = Life::running;
};

}  // namespace gb
