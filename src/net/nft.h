// SPDX-License-Identifier: Apache-2.0
// nftables of one network namespace. Rule sets go through the nft program as text, because the
// libraries behind it are GPL; what a running sandbox needs quickly (the elements of its two sets, a counter)
// goes to the kernel directly, include/uapi/linux/netfilter/nf_tables.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/cidr.h"
#include "net/netlink.h"

namespace gb::net {

inline constexpr std::string_view kNftProgram = "/usr/sbin/nft";

// All of `rules` or nothing, in the namespace of the calling thread. Milliseconds.
Status apply_rules(std::string_view rules);

struct SetContents {
    std::string_view set;
    std::span<const Cidr> blocks;
};
enum class NftFamily : std::uint8_t { inet = 1, netdev = 5 };

// Keep it open where speed counts: to close a socket that has changed something waits for the kernel to have
// freed what was replaced, some 10 ms.
class Nft {
  public:
    // For the namespace that the calling thread is in; holds it alive.
    static Result<Nft> open();

    // Replaces the elements of interval sets of type ipv4_addr in table inet `table`, in one transaction.
    Status replace_elements(std::string_view table, std::span<const SetContents> sets);
    // Packets that a named counter has seen.
    Result<std::uint64_t> read_counter(NftFamily family, std::string_view table, std::string_view counter);
    // Table inet `table`. False: there was none.
    Result<bool> delete_table(std::string_view table);

  private:
    explicit Nft(NetlinkSocket socket) : socket_(std::move(socket)) {}
    NetlinkSocket socket_;
};

}  // namespace gb::net
