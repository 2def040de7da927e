// SPDX-License-Identifier: Apache-2.0
#include "net/slot.h"

#include <algorithm>
#include <array>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <fmt/format.h>

#include "base/log.h"
#include "net/address_block.h"
#include "net/flow_cut.h"
#include "net/netns.h"
#include "net/nft.h"
#include "net/slot_rules.h"

namespace gb::net {
namespace {

constexpr int kBacklog = 128;
constexpr int kNumbersTried = 8;  // links of earlier slots that the kernel is still removing

Status set_sysctls() {
    // The guest gets no IPv6: a kernel without it has no such files.
    for (const char* name : {"net/ipv6/conf/all/disable_ipv6", "net/ipv6/conf/default/disable_ipv6"})
        if (Status status = set_sysctl(name, "1"); !status && status.error().code != ErrorCode::not_found)
            return status;
    GB_TRY(set_sysctl("net/ipv4/ip_forward", "1"));
    // Forwarding resets these, so they come after it. Answer ARP only for the address of the link that asks.
    constexpr std::array<std::pair<const char*, const char*>, 9> kRest{{
        {"net/ipv4/conf/all/send_redirects", "0"},
        {"net/ipv4/conf/default/send_redirects", "0"},
        {"net/ipv4/conf/all/accept_redirects", "0"},
        {"net/ipv4/conf/all/arp_ignore", "1"},
        {"net/ipv4/icmp_ratelimit", "0"},  // one peer, and the rules have a limit of their own
        // A socket into a guest that is gone would go on sending for minutes after its program has ended, and
        // keep the namespace with its devices alive as long.
        {"net/netfilter/nf_conntrack_acct", "1"},
        {"net/netfilter/nf_conntrack_tcp_timeout_time_wait",
         "5"},  // then its end is told, with what it carried
        {"net/ipv4/tcp_orphan_retries", "3"},
        {"net/ipv4/tcp_fin_timeout", "5"},
    }};
    for (auto [name, value] : kRest) GB_TRY(set_sysctl(name, value));
    return {};
}

// A socket that the guest's redirected traffic arrives at.
Result<UniqueFd> open_here(int type, std::uint16_t port) {
    UniqueFd fd(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) return fail_errno("open socket in network slot");
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(kTapAddress.value);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        return fail_errno(fmt::format("bind port {} in network slot", port));
    if (type == SOCK_STREAM && ::listen(fd.get(), kBacklog) != 0)
        return fail_errno(fmt::format("listen on port {} in network slot", port));
    return fd;
}

}  // namespace

Result<std::unique_ptr<Slot>> Slot::create(HostNetwork& host, const SlotOptions& options) {
    std::unique_ptr<Slot> slot(new Slot(host));
    if (Status status = slot->build(options); !status)
        return std::unexpected(status.error().with("make network slot"));
    return slot;
}

Status Slot::build(const SlotOptions& options) {
    GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter_new());
    GB_TRY_ASSIGN(netns_, current_netns());
    GB_TRY(set_sysctls());
    GB_TRY(connect_host());
    if (options.upload_bytes_s != 0 || options.download_bytes_s != 0) GB_TRY(limit_rates(options));
    GB_TRY(make_guest_link(options.link));
    GB_TRY(open_ends());
    std::vector<Cidr> beyond;
    if (host_.ceiling().only_listed) beyond = complement(host_.ceiling().open);
    return apply_rules(slot_rules({.slot_address = slot_addresses(host_.block(), number_).slot,
                                   .ceiling = host_.ceiling().closed,
                                   .beyond = beyond,
                                   .max_connections = options.max_connections}));
}

Result<std::unique_ptr<Slot>> Slot::adopt(HostNetwork& host, std::size_t number, UniqueFd netns,
                                          const SlotOptions& options) {
    GB_TRY(host.take_kept(number));
    std::unique_ptr<Slot> slot(new Slot(host));
    slot->number_ = number;
    slot->numbered_ = true;
    slot->netns_ = std::move(netns);
    if (Status status = slot->reopen(options); !status)
        return std::unexpected(status.error().with(fmt::format("take over network slot {}", number)));
    return slot;
}

Status Slot::reopen(const SlotOptions& options) {
    GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter(netns_.get()));
    GB_TRY_ASSIGN(Links links, Links::open());
    GB_TRY_ASSIGN(std::vector<Ipv4> addresses, links.addresses());
    if (std::ranges::find(addresses, slot_addresses(host_.block(), number_).slot) == addresses.end())
        return fail(ErrorCode::failed_precondition, "it is not the namespace of this slot");
    GB_TRY(open_ends());
    GB_TRY(suppressed());  // both tables are there
    return limit_rates(options);
}

// Where a packet leaves for the outside, and where the host hands one on to here. What is relayed for the
// guest passes both; what its clients send it passes neither.
Status Slot::limit_rates(const SlotOptions& options) {
    GB_TRY_ASSIGN(Links links, Links::open());
    GB_TRY_ASSIGN(int uplink, links.index(kUplink));
    GB_TRY(links.limit_rate(uplink, options.upload_bytes_s));
    return host_.limit_download(number_, options.download_bytes_s);
}

Status Slot::open_ends() {
    GB_TRY_ASSIGN(reader_, DecisionReader::open(kSlotLogGroup));
    GB_TRY_ASSIGN(flows_, FlowReader::open());
    GB_TRY_ASSIGN(nft_, Nft::open());
    GB_TRY_ASSIGN(egress_.dns_udp, open_here(SOCK_DGRAM, kDnsPort));
    GB_TRY_ASSIGN(egress_.dns_tcp, open_here(SOCK_STREAM, kDnsPort));
    GB_TRY_ASSIGN(egress_.proxy, open_here(SOCK_STREAM, kProxyPort));
    return {};
}

Status Slot::connect_host() {
    for (int attempt = 1;; ++attempt) {
        GB_TRY_ASSIGN(number_, host_.take_number());
        numbered_ = true;
        Status status = host_.connect(number_, netns_.get());
        if (status) break;
        host_.release_number(number_);
        numbered_ = false;
        if (status.error().code != ErrorCode::already_exists || attempt == kNumbersTried) return status;
    }
    GB_TRY_ASSIGN(Links links, Links::open());
    GB_TRY_ASSIGN(int loopback, links.index("lo"));
    GB_TRY(links.set_up(loopback));
    SlotAddresses addresses = slot_addresses(host_.block(), number_);
    GB_TRY_ASSIGN(int uplink, links.index(kUplink));
    GB_TRY(links.add_address(uplink, addresses.slot, kSlotPrefix));
    GB_TRY(links.set_up(uplink));
    return links.add_default_route(addresses.host, uplink);
}

Status Slot::make_guest_link(GuestLink kind) {
    GB_TRY_ASSIGN(Links links, Links::open());
    std::string name(kGuestLink);
    if (kind == GuestLink::tap) {
        GB_TRY_ASSIGN(tap_, open_tap(name));
    } else {
        GB_TRY_ASSIGN(guest_netns_, create_netns());
        GB_TRY(links.add_veth({.name = name},
                              {.name = "eth0", .netns_fd = guest_netns_.get(), .mac = &kGuestMac}));
        GB_TRY_ASSIGN(NetnsScope guest, NetnsScope::enter(guest_netns_.get()));
        GB_TRY_ASSIGN(Links inside, Links::open());
        GB_TRY_ASSIGN(int loopback, inside.index("lo"));
        GB_TRY(inside.set_up(loopback));
        GB_TRY_ASSIGN(int eth0, inside.index("eth0"));
        GB_TRY(inside.add_address(eth0, kGuestAddress, kGuestPrefix));
        GB_TRY(inside.set_up(eth0));
        GB_TRY(inside.add_default_route(kTapAddress, eth0));
    }
    GB_TRY_ASSIGN(int index, links.index(name));
    GB_TRY(links.set_mac(index, kTapMac));
    GB_TRY(links.add_address(index, kTapAddress, kGuestPrefix));
    GB_TRY(links.set_up(index));
    return links.add_neighbour(index, kGuestAddress, kGuestMac);
}

Slot::~Slot() {
    tap_.reset();
    reader_.reset();
    flows_.reset();
    egress_ = {};
    nft_.reset();
    guest_netns_.reset();
    netns_.reset();
    if (numbered_) host_.release_number(number_);
}

Result<UniqueFd> Slot::socket(int type) const {
    GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter(netns_.get()));
    UniqueFd fd(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) return fail_errno("open socket in network slot");
    int on = 1;
    if (type == SOCK_STREAM) ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

Status Slot::set_policy(EgressPolicy policy) {
    std::lock_guard lock(mutex_);
    const PacketSets sets_of_policy = packet_sets(policy, host_.ceiling());
    const std::array<SetContents, 6> sets{{{kAllowSet, sets_of_policy.allow},
                                           {kDenySet, sets_of_policy.deny},
                                           {kNamedSet, sets_of_policy.named},
                                           {kTunneledSet, sets_of_policy.tunneled},
                                           {kUdpSet, sets_of_policy.udp_closed},
                                           {kQuicSet, sets_of_policy.quic_closed}}};
    GB_TRY(nft_->replace_elements(kTable, sets));
    // Nothing was open under a policy that denies everything, and one that denies nothing cuts nothing: the
    // ceiling is what it was. To look costs milliseconds.
    const bool denies =
        !sets_of_policy.deny.empty() || !sets_of_policy.named.empty() || !sets_of_policy.tunneled.empty();
    const bool may_cut = denies && policy_ != closed_policy() && policy != policy_;
    policy_ = std::move(policy);
    if (!may_cut) return {};
    // The rules hold without it.
    if (const Status cut = cut_denied(sets_of_policy); !cut)
        log::warn("connections that are denied now are not told so", {{"error", cut.error().message}});
    return {};
}

Status Slot::cut_denied(const PacketSets& sets) {
    GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter(netns_.get()));
    GB_TRY_ASSIGN(std::vector<Decision> flows, FlowReader::open_tcp_flows());
    std::erase_if(flows, [&](const Decision& flow) {
        const auto address = parse_ipv4(flow.address);
        return !address || !denies_packets(policy_, host_.ceiling(), sets, *address, flow.port);
    });
    return provoke_resets(flows);
}

Result<std::vector<Decision>> Slot::open_flows() const {
    GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter(netns_.get()));
    return FlowReader::open_flows();
}

EgressPolicy Slot::policy() const {
    std::lock_guard lock(mutex_);
    return policy_;
}

std::vector<Decision> Slot::read_decisions(std::size_t most) {
    std::vector<Decision> out = reader_->read(most);
    std::vector<Decision> ended = flows_->read(most);
    std::ranges::move(ended, std::back_inserter(out));
    std::lock_guard lock(mutex_);
    for (Decision& decision : out) name_rule(decision, policy_, host_.ceiling());
    return out;
}

Result<std::uint64_t> Slot::suppressed() const {
    std::lock_guard lock(mutex_);
    GB_TRY_ASSIGN(std::uint64_t packets, nft_->read_counter(NftFamily::inet, kTable, kUnloggedCounter));
    GB_TRY_ASSIGN(std::uint64_t frames, nft_->read_counter(NftFamily::netdev, kTable, kUnloggedCounter));
    return packets + frames + reader_->lost();
}

}  // namespace gb::net
