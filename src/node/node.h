// SPDX-License-Identifier: Apache-2.0
// What control may ask of one machine that runs sandboxes. In-process on a single machine; the same calls
// cross a network when there are many. Nothing above this interface touches a process, a sandbox's file or a
// network device.
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
#include "net/network_request.h"

namespace gb {

inline constexpr std::uint16_t kAgentPort = 49983;  // where the agent of every guest listens

struct TemplateInfo {
    std::string id;  // 20 of [a-z0-9]
    std::string name;
    std::string build_id;  // UUID of the snapshot that sandboxes start from
    int cpu_count = 1;
    int memory_mib = 0;
    int disk_mib = 0;
    std::int64_t created_ms = 0;
};

// What a client asked of the network; the node turns it into a policy or refuses it (invalid_argument).
using net::NetworkRequest;

// The network of a running sandbox as it is in force, for people and programs to read. Texts are canonical;
// nothing here is secret.
struct EffectiveNetwork {
    // What nobody opens: ranges, then the operator's blocks and names and the host's addresses.
    std::vector<std::string> closed;
    bool only_listed = false;  // the operator's mode "closed": nothing but `listed` leaves
    std::vector<std::string> listed;
    std::vector<std::string> allow_out, deny_out;
    std::map<std::string, std::vector<std::string>>
        header_rules;                    // by host: the names of headers that are set
    std::string egress_proxy;            // host:port, or empty
    bool names_decide = false;           // TCP to 80 and 443 goes through the name proxy, UDP is closed
    std::vector<std::string> resolvers;  // that names are asked from, host:port
    unsigned max_connections = 0;        // at a time
    std::uint64_t upload_bytes_s = 0, download_bytes_s = 0;  // 0: no limit
};

// A part of a decision log.
struct DecisionPage {
    std::vector<std::string> lines;  // each a JSON object
    std::string next;                // ask for what follows with it; opaque
};

// The content of a team's secret, for a header of a request that a sandbox makes; called on any thread, at
// any time.
using SecretSource =
    std::function<Result<std::string>(const std::string& sandbox_id, const std::string& name)>;

struct SandboxSpec {
    std::string id;
    std::string template_id;
    std::string
        snapshot_build;  // a snapshot to start from instead of the template's newest build; empty: none
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
    std::string build_id;                         // UUID, new
    std::string template_id, name;                // what it is a build of
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
    std::string vmm;  // "QEMU 7.2.22"
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
    // Sandboxes that are restored ahead of time and wait for an owner, by the name of their template; they
    // are nobody's and in no list. Templates that had some are named with 0.
    std::map<std::string, std::size_t> warm;
    std::uint64_t creates_from_pool = 0, creates_from_restore = 0;  // since the server's start
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
    // What to answer who wants one of that name, which is not among them: not_found; or unavailable when it is being
    // prepared, which this may begin, or could not be. Looks at the disk.
    virtual Error absent_template(const std::string& name) = 0;

    // Returns when the guest's agent has taken its identity and answers. resource_exhausted/unavailable say
    // what is short.
    virtual boost::asio::awaitable<Status> create(SandboxSpec spec) = 0;

    // Saves a running sandbox and ends its machine. When this returns, the sandbox can be resumed, also after
    // a power failure. On any error it runs on.
    virtual boost::asio::awaitable<Status> pause(std::string id, PauseMode mode) = 0;

    // Runs a paused sandbox again, with what `spec` says now of environment, token and network. On an error
    // it stays paused; data_loss: its saved state is damaged.
    virtual boost::asio::awaitable<Status> resume(SandboxSpec spec) = 0;

    // Copies a running sandbox, which runs on and stands still only for that. On an error nothing is left of
    // the copy.
    virtual boost::asio::awaitable<Status> snapshot(SnapshotSpec spec) = 0;
    // Sandboxes that were started from it go on. Unknown ones are success.
    virtual boost::asio::awaitable<Status> remove_snapshot(std::string build_id) = 0;
    // The build ids of all that are here.
    virtual Result<std::vector<std::string>> snapshots() = 0;

    // Everything held here: machines that were taken over from a previous run of the server, and paused
    // sandboxes.
    virtual Result<std::vector<HeldSandbox>> held() = 0;

    // Waits while the machine of that sandbox, or any machine when the id is empty, is being taken over from a previous
    // run. Coroutines of this class do so by themselves.
    virtual boost::asio::awaitable<void> taken_over(std::string id) = 0;

    // Gives up the running machines without ending them; the next node of the same folder takes them over.
    // Nothing else may be called afterwards.
    virtual void leave_running() = 0;

    // Returns when process, network, cgroup and files are gone, those of a paused sandbox too. Unknown ids
    // are success.
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

    // Replaces the network rules of a running sandbox at once; connections that are denied now are cut. On an
    // error everything is as it was.
    virtual boost::asio::awaitable<Status> set_network(std::string id, NetworkRequest network) = 0;
    virtual Result<EffectiveNetwork> network(const std::string& id) = 0;
    // Where header rules get secrets from; without it a rule that names one fails. Set once, before the first
    // sandbox.
    virtual void use_secrets(SecretSource source) = 0;

    // Of the decision log of a sandbox, also of one that is gone: at most `limit` lines that follow those of
    // an earlier page; with an empty `after` from the first that is kept.
    virtual Result<DecisionPage> decisions_after(const std::string& id, const std::string& after,
                                                 std::size_t limit) = 0;

    // Called on the node's executor when a machine ended without destroy(); the sandbox is gone then.
    virtual void on_exit(std::function<void(std::string id, std::string reason)> callback) = 0;
};

}  // namespace gb
