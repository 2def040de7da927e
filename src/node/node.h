// What control may ask of one machine that runs sandboxes. In-process on a single machine; the same calls cross a
// network when there are many. Nothing above this interface touches a process, a sandbox's file or a network device.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/result.h"

namespace gb {

inline constexpr std::uint16_t kAgentPort = 49983;  // where the agent of every guest listens

struct TemplateInfo {
    std::string id;        // 20 of [a-z0-9]
    std::string name;
    std::string build_id;  // UUID of the snapshot that sandboxes start from
    int cpu_count = 1;
    int memory_mib = 0;
    int disk_mib = 0;
    std::int64_t created_ms = 0;
};

// What a client asked of the network, unparsed; the node turns it into a policy or refuses it (invalid_argument).
struct NetworkRequest {
    std::optional<bool> allow_internet_access;
    std::vector<std::string> allow_out;
    std::vector<std::string> deny_out;
};

struct SandboxSpec {
    std::string id;
    std::string template_id;
    std::string snapshot_build;  // a snapshot to start from instead of the template's newest build; empty: none
    std::map<std::string, std::string> env_vars;
    std::string access_token;  // empty: the agent asks for none
    NetworkRequest network;
};

enum class PauseMode {
    with_memory,      // processes go on where they were
    filesystem_only,  // the guest boots again from its disk
};

// A copy of a running sandbox that others can be started from: memory, processes, files of one moment.
struct SnapshotSpec {
    std::string sandbox_id;
    std::string build_id;           // UUID, new
    std::string template_id, name;  // what it is a build of
    std::map<std::string, std::string> env_vars;  // of the sandbox; those that start from it have them too
    enum class Keep {
        durable,  // it outlives a power failure
        for_now,  // to be started from and removed at once
    } keep = Keep::durable;
    PauseMode mode = PauseMode::with_memory;  // or those that start from it boot from its disk
};

// What really runs a sandbox; never what was hoped for.
struct Isolation {
    std::string isolation_class;  // "microvm"
    std::string accelerator;      // "kvm" or "tcg" (software emulation)
    std::string accelerator_reason;
    std::string vmm;              // "QEMU 7.2.22"
    std::string guest_kernel;
    std::string host_kernel;
};

// A sandbox that this machine has, whether or not anybody above still knows it.
struct HeldSandbox {
    std::string id;
    bool running = false;  // otherwise paused: files only
};

// The machine itself, for the operator.
struct NodeInfo {
    std::string id;
    std::string accelerator;  // of the templates here: "kvm" or "tcg"; empty without templates
    std::string vmm;
    int cpu_count = 0;
    std::uint64_t memory_mib = 0, memory_available_mib = 0, memory_reserve_mib = 0;
    std::uint64_t disk_available_mib = 0;  // where sandboxes are kept
};

struct SandboxUsage {
    std::uint64_t private_bytes = 0;  // memory that only this sandbox uses
};

enum class DiskKind {
    sandbox,  // its folder
    build,    // a captured state that sandboxes start from
};

// What something that is kept here takes of this machine's disk.
struct DiskUse {
    std::string id;  // of the sandbox or the build
    DiskKind kind = DiskKind::sandbox;
    std::uint64_t bytes = 0;  // blocks that are really written; files that others hold too are not counted
};

// What a guest says about its use of its machine. Untrusted: well-formed, but perhaps untrue.
struct GuestMetrics {
    // Of all processors together, since the guest took its identity.
    std::uint64_t cpu_busy_ticks = 0, cpu_total_ticks = 0;
    std::int64_t mem_used = 0, mem_total = 0, mem_cache = 0;  // bytes
    std::int64_t disk_used = 0, disk_total = 0;
};

struct GuestLogEntry {
    std::uint64_t sequence = 0;  // begins at 1 when the guest takes an identity
    std::int64_t time_ms = 0;    // by the guest's clock
    std::string level;           // debug, info, warn, error
    std::string message;
    std::map<std::string, std::string> fields;  // "logger" is always there, and never "sandbox"
};

struct Telemetry {
    GuestMetrics metrics;
    std::vector<GuestLogEntry> entries;  // in the order of their sequences
    std::uint64_t next = 0;              // what to ask for the next time
    std::uint64_t dropped = 0;           // entries that were asked for and are gone
    bool more = false;                   // there are further entries now
};

class Node {
  public:
    virtual ~Node() = default;

    // Templates that can be started now; looks at the disk again when it changed.
    virtual Result<std::vector<TemplateInfo>> templates() = 0;

    // Returns when the guest's agent has taken its identity and answers. resource_exhausted/unavailable say what is
    // short.
    virtual boost::asio::awaitable<Status> create(SandboxSpec spec) = 0;

    // Saves a running sandbox and ends its machine. When this returns, the sandbox can be resumed, also after a power
    // failure. On any error it runs on.
    virtual boost::asio::awaitable<Status> pause(std::string id, PauseMode mode) = 0;

    // Runs a paused sandbox again, with what `spec` says now of environment, token and network. On an error it stays
    // paused; data_loss: its saved state is damaged.
    virtual boost::asio::awaitable<Status> resume(SandboxSpec spec) = 0;

    // Copies a running sandbox, which runs on and stands still only for that. On an error nothing is left of the copy.
    virtual boost::asio::awaitable<Status> snapshot(SnapshotSpec spec) = 0;
    // Sandboxes that were started from it go on. Unknown ones are success.
    virtual boost::asio::awaitable<Status> remove_snapshot(std::string build_id) = 0;
    // The build ids of all that are here.
    virtual Result<std::vector<std::string>> snapshots() = 0;

    // Everything held here: machines that were taken over from a previous run of the server, and paused sandboxes.
    virtual Result<std::vector<HeldSandbox>> held() = 0;

    // Gives up the running machines without ending them; the next node of the same folder takes them over. Nothing else
    // may be called afterwards.
    virtual void leave_running() = 0;

    // Returns when process, network, cgroup and files are gone, those of a paused sandbox too. Unknown ids are success.
    virtual boost::asio::awaitable<Status> destroy(std::string id) = 0;

    // A connection to a port of the guest. unavailable: nobody listens there; not_found: no such sandbox.
    virtual boost::asio::awaitable<Result<boost::asio::ip::tcp::socket>> connect(std::string id,
                                                                                 std::uint16_t port) = 0;

    virtual Result<NodeInfo> info() = 0;
    virtual Result<Isolation> isolation(const std::string& id) = 0;
    virtual Result<SandboxUsage> usage(const std::string& id) = 0;

    // Of everything held, running or paused. Looks at every file: not for the event loop. What goes away
    // meanwhile is left out.
    virtual Result<std::vector<DiskUse>> disk_use() = 0;

    // What the guest of a running sandbox counts, and its log entries after a sequence. Takes 2 s at most,
    // and no thread: deadline_exceeded, unavailable; internal when the answer is none of our agent.
    virtual boost::asio::awaitable<Result<Telemetry>> telemetry(std::string id, std::uint64_t after) = 0;

    // The last `limit` lines of the sandbox's decision log, each a JSON object.
    virtual Result<std::vector<std::string>> decisions(const std::string& id, std::size_t limit) = 0;

    // Called on the node's executor when a machine ended without destroy(); the sandbox is gone then.
    virtual void on_exit(std::function<void(std::string id, std::string reason)> callback) = 0;
};

}  // namespace gb
