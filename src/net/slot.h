// SPDX-License-Identifier: Apache-2.0
// A network slot: the namespace that one sandbox's traffic passes through, with its rules, its policy and its
// decisions. Made ahead of time (slot_pool.h), used by one sandbox, thrown away.
//
//   guest 10.11.0.2 ── tap0 10.11.0.1 [ slot: rules, source NAT ] up0 ── gb<tag>-<number> [ host: rules, NAT
//   ] ──
//
// The namespace has no name: it lives as long as this object, the tap's descriptor or a socket in it does,
// and the kernel removes its devices with it. See slot_rules.h for what passes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/decision_reader.h"
#include "net/flow_reader.h"
#include "net/host_network.h"
#include "net/nft.h"
#include "net/policy.h"

namespace gb::net {

enum class GuestLink {
    tap,   // for a virtual machine: a queue descriptor, virtio header on each frame
    veth,  // for an engine that lives in a namespace: `eth0` there, with address, route and MAC of the guest
};

struct SlotOptions {
    GuestLink link = GuestLink::tap;
    unsigned max_connections = 2500;  // at a time, of the guest to the outside
    // How fast a guest may send to the outside and receive from there, in bytes of packets a second; 0: as fast
    // as it can. What its server's clients send and receive is not counted.
    std::uint64_t upload_bytes_s = 0, download_bytes_s = 0;
};

// Where the guest's DNS questions arrive, and its connections that are to be judged by name: bound,
// listening, without waiting. While nobody serves them nothing of that leaves.
struct EgressSockets {
    UniqueFd dns_udp, dns_tcp, proxy;
};

class Slot {
  public:
    // Blocking, some milliseconds. The new slot is closed: closed_policy().
    static Result<std::unique_ptr<Slot>> create(HostNetwork& host, const SlotOptions& options = {});
    // Takes over the slot of a machine that outlived its server: `number` must have been kept by the host's
    // network, `netns` be the namespace of that slot. Its rules and its policy are in force all the time; the
    // policy is to be set again all the same, because policy() does not know it. Of `options` the rates are
    // set anew. failed_precondition when something is not as it was left.
    static Result<std::unique_ptr<Slot>> adopt(HostNetwork& host, std::size_t number, UniqueFd netns,
                                               const SlotOptions& options = {});
    ~Slot();
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    [[nodiscard]] std::size_t number() const { return number_; }
    [[nodiscard]] std::string host_link() const { return host_.link_name(number_); }
    [[nodiscard]] int netns_fd() const { return netns_.get(); }              // for setns; stays the slot's
    [[nodiscard]] int guest_netns_fd() const { return guest_netns_.get(); }  // GuestLink::veth only, else -1

    // The tap's queue, for `-netdev tap,fd=`. Ownership moves: when the machine that has it ends, the tap
    // does.
    UniqueFd take_tap() { return std::move(tap_); }

    // At most once. Whoever has them keeps the namespace alive.
    EgressSockets take_egress_sockets() { return std::exchange(egress_, {}); }

    // A non-blocking socket in the slot: it reaches the guest's ports, and what is outside by way of the
    // rules, which hold back closed ranges only. Quick enough for every request; callable from any thread.
    [[nodiscard]] Result<UniqueFd> socket(int type = SOCK_STREAM) const;

    // Replaces the policy at once; connections that it denies are cut. Well under a millisecond, unless
    // another change came just before.
    Status set_policy(EgressPolicy policy);
    [[nodiscard]] EgressPolicy policy() const;

    // Readable when decisions wait; for poll and epoll.
    [[nodiscard]] int decision_fd() const { return reader_->fd(); }
    // The same for ends of connections that no proxy carried; read_decisions() reads both.
    [[nodiscard]] int flow_fd() const { return flows_->fd(); }
    // Never blocks; for one thread at a time.
    std::vector<Decision> read_decisions(std::size_t most = 256);
    // What connections that have not ended have carried so far, as if they ended now: for a slot that ends.
    [[nodiscard]] Result<std::vector<Decision>> open_flows() const;
    // Decisions that will never be read: beyond the rate of the rules, or lost because nobody read in time.
    [[nodiscard]] Result<std::uint64_t> suppressed() const;

  private:
    explicit Slot(HostNetwork& host) : host_(host) {}
    Status build(const SlotOptions& options);
    Status reopen(const SlotOptions& options);
    Status open_ends();
    Status connect_host();
    Status make_guest_link(GuestLink kind);
    Status limit_rates(const SlotOptions& options);
    Status cut_denied(const PacketSets& sets);

    HostNetwork& host_;
    std::size_t number_ = 0;
    bool numbered_ = false;
    UniqueFd netns_;
    UniqueFd guest_netns_;
    UniqueFd tap_;
    std::optional<DecisionReader> reader_;
    std::optional<FlowReader> flows_;
    EgressSockets egress_;
    mutable std::mutex mutex_;  // of what follows
    mutable std::optional<Nft> nft_;
    EgressPolicy policy_ = closed_policy();
};

}  // namespace gb::net
