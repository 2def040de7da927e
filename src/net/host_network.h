// SPDX-License-Identifier: Apache-2.0
// The host's side of all slots of one server: a block of addresses, the rules in the host's namespace, the
// host ends of the slots' links. One object a server; it must outlive its slots.
//
// What it leaves in the kernel carries the instance's tag and dies with the object, or, when the server was
// killed, with the next start of the same instance (reclaim): table inet glovebox_<tag>, interfaces
// gb<tag>-*, one unreachable route. Slots whose machines outlived the server keep theirs
// (HostNetworkOptions::keep), and rules are in force all the time. net.ipv4.ip_forward is switched on and
// stays on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/cidr.h"
#include "net/decision_reader.h"
#include "net/links.h"
#include "net/policy.h"

namespace gb::net {

struct HostNetworkOptions {
    std::string instance;   // id of this server, the same after a restart
    int block_length = 21;  // 11 to 30; 21 has room for 512 slots
    Ceiling ceiling;        // what no client of this installation opens
    // Slots of an earlier server of this instance whose machines live. They keep their links, and all slots
    // the block, as far as these are still there: see kept(). Whoever is kept is to be adopted (Slot::adopt).
    std::vector<std::size_t> keep;
};

struct Reclaimed {
    std::size_t tables = 0, links = 0, routes = 0;
};

struct HostDecision {
    std::size_t slot = 0;
    Decision decision;
};

class HostNetwork {
  public:
    // In the namespace of the calling thread, after reclaim. Errors: already_exists when this instance runs
    // already, resource_exhausted when no block is free, permission_denied without CAP_NET_ADMIN.
    static Result<std::unique_ptr<HostNetwork>> create(HostNetworkOptions options);
    ~HostNetwork();
    HostNetwork(const HostNetwork&) = delete;
    HostNetwork& operator=(const HostNetwork&) = delete;

    // Lets all that it made stay in the kernel when it ends, for a server to come; for when machines live on.
    void leave() { has_table_ = has_route_ = false; }

    // Removes what a killed server of this instance left. Refused (already_exists) while one runs.
    static Result<Reclaimed> reclaim(std::string_view instance);

    [[nodiscard]] const Cidr& block() const { return block_; }
    [[nodiscard]] std::uint16_t tag() const { return tag_; }
    // As it was given, with the host's own addresses as they were at the start closed too. Addresses that the
    // host gets later are closed by the host's rules.
    [[nodiscard]] const Ceiling& ceiling() const { return ceiling_; }

    // Packets that only the host's rules stopped: the slot's rules had let them pass. fd() is for poll;
    // reading is for one thread.
    [[nodiscard]] int decision_fd() const { return reader_->fd(); }
    std::vector<HostDecision> read_decisions(std::size_t most = 256);

    // For Slot. A number stays taken until it is released; connect says already_exists while the link of an
    // earlier slot of that number is still being removed by the kernel.
    Result<std::size_t> take_number();
    void release_number(std::size_t number);
    // Whether this number was kept and nobody has adopted its slot yet. take_kept says failed_precondition
    // otherwise.
    [[nodiscard]] bool kept(std::size_t number) const;
    Status take_kept(std::size_t number);
    void release_kept();  // the numbers that nobody will adopt any more
    [[nodiscard]] std::string link_name(std::size_t number) const;
    Status connect(std::size_t number, int slot_netns);
    Status limit_download(std::size_t number, std::uint64_t bytes_s);  // Links::limit_rate

  private:
    HostNetwork() = default;
    Status claim_block(std::string_view instance, int length);
    Status keep_block(const Cidr& block);

    std::uint16_t tag_ = 0;
    UniqueFd home_;        // the host's namespace
    UniqueFd lock_;        // says that this instance runs
    UniqueFd block_lock_;  // says that the block is taken, before its route does
    Cidr block_;
    Ceiling ceiling_;
    std::optional<DecisionReader> reader_;
    bool has_route_ = false;
    bool has_table_ = false;

    mutable std::mutex mutex_;
    std::optional<Links> links_;
    std::vector<bool> taken_;
    std::vector<std::size_t> kept_;
    std::size_t next_ = 0;
};

}  // namespace gb::net
