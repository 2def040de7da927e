// SPDX-License-Identifier: Apache-2.0
#include "net/host_network.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <fmt/format.h>

#include "base/log.h"
#include "net/address_block.h"
#include "net/host_rules.h"
#include "net/netns.h"
#include "net/nft.h"
#include "net/slot_rules.h"

namespace gb::net {
namespace {

constexpr std::uint8_t kRouteProtocol = 0x67;  // marks our route, beside its priority
constexpr std::uint32_t kMark = 0x67620000;    // "gb" in front of the tag

std::uint32_t marked(std::uint16_t tag) {
    return kMark | tag;
}

// A name in the abstract socket namespace, unix(7): one holder in each network namespace, and the kernel
// gives it back when the holder dies.
Result<UniqueFd> lock_name(const std::string& name) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) return fail_errno("open lock socket");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), std::min(name.size(), sizeof address.sun_path - 1));
    auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
        if (errno == EADDRINUSE) return fail(ErrorCode::already_exists, fmt::format("{} is in use", name));
        return fail_errno(fmt::format("bind lock socket {}", name));
    }
    return fd;
}

Result<UniqueFd> lock_instance(std::uint16_t tag, std::string_view instance) {
    auto fd = lock_name(fmt::format("glovebox-net-{}", tag_text(tag)));
    if (!fd && fd.error().code == ErrorCode::already_exists)
        return fail(ErrorCode::already_exists,
                    fmt::format("a server of instance {} (network tag {}) runs on this machine already",
                                instance, tag_text(tag)));
    return fd;
}

std::string link_of(std::uint16_t tag, std::size_t number) {
    return fmt::format("{}{}", host_link_prefix(tag), number);
}

bool is_ours(const Route& route, std::uint16_t tag) {
    return route.type == RTN_UNREACHABLE && route.protocol == kRouteProtocol && route.priority == marked(tag);
}

// What an earlier server left and a later one goes on with.
struct Remains {
    std::optional<Cidr> block;
    std::vector<std::size_t> slots;
};

// A slot is of use only with its link to the host, and with the block that its address is of.
Result<Remains> find_remains(std::uint16_t tag, const std::vector<std::size_t>& wanted) {
    Remains out;
    if (wanted.empty()) return out;
    GB_TRY_ASSIGN(Links links, Links::open());
    GB_TRY_ASSIGN(std::vector<Route> routes, links.routes());
    for (const Route& route : routes)
        if (is_ours(route, tag)) out.block = route.to;
    if (!out.block) return Remains{};
    GB_TRY_ASSIGN(std::vector<std::string> names, links.names());
    for (std::size_t number : wanted)
        if (number < slot_count(*out.block) &&
            std::ranges::find(names, link_of(tag, number)) != names.end() &&
            std::ranges::find(out.slots, number) == out.slots.end())
            out.slots.push_back(number);
    return out.slots.empty() ? Remains{} : out;
}

Result<Reclaimed> reclaim_locked(std::uint16_t tag, const Remains& keep = {}) {
    Reclaimed out;
    GB_TRY_ASSIGN(Links links, Links::open());
    std::vector<std::string> spared;
    for (std::size_t number : keep.slots) spared.push_back(link_of(tag, number));
    auto ours = [&]() -> Result<std::vector<std::string>> {
        GB_TRY_ASSIGN(std::vector<std::string> names, links.names());
        std::erase_if(names, [&](const std::string& name) {
            return !name.starts_with(host_link_prefix(tag)) ||
                   std::ranges::find(spared, name) != spared.end();
        });
        return names;
    };
    GB_TRY_ASSIGN(std::vector<std::string> stray, ours());
    if (!stray.empty()) {
        // All at once where the kernel finds them by their group; one by one what that leaves.
        if (spared.empty()) (void)links.remove_group(marked(tag));
        GB_TRY_ASSIGN(std::vector<std::string> left, ours());
        for (const std::string& name : left) [[maybe_unused]]
            Status one = links.remove(name);
        GB_TRY_ASSIGN(left, ours());
        if (!left.empty())
            return fail(ErrorCode::internal, fmt::format("cannot remove interface {}", left.front()));
    }
    out.links = stray.size();
    GB_TRY_ASSIGN(std::vector<Route> routes, links.routes());
    for (const Route& route : routes) {
        if (!is_ours(route, tag) || route.to == keep.block) continue;
        GB_TRY(links.remove_unreachable(route.to, kRouteProtocol, marked(tag)));
        ++out.routes;
    }
    if (keep.block) return out;  // the rules stay in force until they are replaced
    GB_TRY_ASSIGN(Nft nft, Nft::open());
    GB_TRY_ASSIGN(bool removed, nft.delete_table(host_table(tag)));
    out.tables = removed ? 1 : 0;
    return out;
}

Status forward_packets() {
    GB_TRY_ASSIGN(std::string before, get_sysctl("net/ipv4/ip_forward"));
    if (before == "1") return {};
    GB_TRY(set_sysctl("net/ipv4/ip_forward", "1"));
    log::info("IPv4 forwarding was off and is on now: sandboxes reach the network through this host",
              {{"sysctl", "net.ipv4.ip_forward"}, {"before", before}});
    return {};
}

}  // namespace

Result<Reclaimed> HostNetwork::reclaim(std::string_view instance) {
    std::uint16_t tag = instance_tag(instance);
    GB_TRY_ASSIGN(UniqueFd lock, lock_instance(tag, instance));
    return reclaim_locked(tag);
}

Status HostNetwork::claim_block(std::string_view instance, int length) {
    for (Overlap worst : {Overlap::none, Overlap::covered}) {
        for (const Cidr& candidate : block_candidates(instance, length)) {
            auto lock = lock_name(fmt::format("glovebox-block-{}", to_string(candidate)));
            if (!lock && lock.error().code == ErrorCode::already_exists) continue;
            if (!lock) return std::unexpected(lock.error());
            // Looked up only now, under the lock: whoever held it before has made its route by now, or is
            // gone.
            GB_TRY_ASSIGN(std::vector<Route> routes, links_->routes());
            std::vector<Cidr> used;
            for (const Route& route : routes) used.push_back(route.to);
            if (overlap(candidate, used) > worst) continue;
            if (worst == Overlap::covered)
                log::warn("sandbox addresses lie inside a range that this host routes elsewhere",
                          {{"block", to_string(candidate)}});
            GB_TRY(links_->add_unreachable(candidate, kRouteProtocol, marked(tag_)));
            has_route_ = true;
            block_ = candidate;
            block_lock_ = std::move(*lock);
            return {};
        }
    }
    return fail(ErrorCode::resource_exhausted,
                "no block of 10.192.0.0/10 is free on this host for sandbox networks");
}

Status HostNetwork::keep_block(const Cidr& block) {
    GB_TRY_ASSIGN(block_lock_, lock_name(fmt::format("glovebox-block-{}", to_string(block))));
    block_ = block;
    return {};
}

Result<std::unique_ptr<HostNetwork>> HostNetwork::create(HostNetworkOptions options) {
    if (options.block_length < 11 || options.block_length > kSlotPrefix)
        return fail(ErrorCode::invalid_argument, "the block of slot addresses has a length of 11 to 30 bits");
    std::unique_ptr<HostNetwork> host(new HostNetwork);
    host->tag_ = instance_tag(options.instance);
    GB_TRY_ASSIGN(host->home_, current_netns());
    GB_TRY_ASSIGN(host->lock_, lock_instance(host->tag_, options.instance));
    GB_TRY_ASSIGN(Remains remains, find_remains(host->tag_, options.keep));
    GB_TRY_ASSIGN(Reclaimed left, reclaim_locked(host->tag_, remains));
    if (left.tables + left.links + left.routes > 0)
        log::info("removed what an earlier run left in the network",
                  {{"tables", left.tables}, {"links", left.links}, {"routes", left.routes}});

    GB_TRY_ASSIGN(host->links_, Links::open());
    host->ceiling_ = options.ceiling;
    GB_TRY_ASSIGN(std::vector<Ipv4> own, host->links_->addresses());
    for (Ipv4 address : own)  // those of kept links are inside the block
        if (!remains.block || !remains.block->contains(address))
            host->ceiling_.closed.push_back(Cidr::of(address, 32));
    GB_TRY(remains.block ? host->keep_block(*remains.block)
                         : host->claim_block(options.instance, options.block_length));
    host->taken_.resize(slot_count(host->block_));
    host->kept_ = remains.slots;
    for (std::size_t number : host->kept_) host->taken_[number] = true;

    GB_TRY_ASSIGN(host->reader_, DecisionReader::open(host_log_group(host->tag_)));
    GB_TRY(apply_rules(
        host_rules({.tag = host->tag_, .block = host->block_, .ceiling = options.ceiling.closed})));
    GB_TRY(forward_packets());
    // Not before: a start that fails must not take the rules of machines that live away.
    host->has_route_ = host->has_table_ = true;
    return host;
}

HostNetwork::~HostNetwork() {
    if (!has_route_) return;
    auto scope = NetnsScope::enter(home_.get());
    if (!scope) return;
    if (has_table_) {
        auto nft = Nft::open();
        auto removed = nft ? nft->delete_table(host_table(tag_)) : std::unexpected(nft.error());
        if (!removed) log::warn("network table stays behind", {{"error", removed.error().message}});
    }
    if (Status status = links_->remove_unreachable(block_, kRouteProtocol, marked(tag_)); !status)
        log::warn("network route stays behind", {{"error", status.error().message}});
}

std::vector<HostDecision> HostNetwork::read_decisions(std::size_t most) {
    std::vector<HostDecision> out;
    for (Decision& decision : reader_->read(most)) {
        auto source = parse_ipv4(decision.source);
        if (source && block_.contains(*source))
            out.push_back({slot_of(block_, *source), std::move(decision)});
    }
    return out;
}

Result<std::size_t> HostNetwork::take_number() {
    std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < taken_.size(); ++i) {
        std::size_t number = (next_ + i) % taken_.size();
        if (taken_[number]) continue;
        taken_[number] = true;
        next_ = number + 1;
        return number;
    }
    return fail(ErrorCode::resource_exhausted, fmt::format("all {} network slots are in use", taken_.size()));
}

void HostNetwork::release_number(std::size_t number) {
    std::lock_guard lock(mutex_);
    taken_[number] = false;
}

bool HostNetwork::kept(std::size_t number) const {
    std::lock_guard lock(mutex_);
    return std::ranges::find(kept_, number) != kept_.end();
}

Status HostNetwork::take_kept(std::size_t number) {
    std::lock_guard lock(mutex_);
    if (std::erase(kept_, number) != 0) return {};
    return fail(ErrorCode::failed_precondition, fmt::format("network slot {} was not kept", number));
}

void HostNetwork::release_kept() {
    std::lock_guard lock(mutex_);
    for (std::size_t number : kept_) taken_[number] = false;
    kept_.clear();
}

std::string HostNetwork::link_name(std::size_t number) const {
    return link_of(tag_, number);
}

Status HostNetwork::connect(std::size_t number, int slot_netns) {
    std::string name = link_name(number);
    GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter(home_.get()));
    std::lock_guard lock(mutex_);
    GB_TRY(links_->add_veth({.name = name, .group = marked(tag_)},
                            {.name = std::string(kUplink), .netns_fd = slot_netns}));
    // A sandbox has no IPv6, so its link needs none. A host without IPv6 has no such file.
    [[maybe_unused]] Status no_ipv6 = set_sysctl(fmt::format("net/ipv6/conf/{}/disable_ipv6", name), "1");
    GB_TRY_ASSIGN(int index, links_->index(name));
    GB_TRY(links_->add_address(index, slot_addresses(block_, number).host, kSlotPrefix));
    return links_->set_up(index);
}

Status HostNetwork::limit_download(std::size_t number, std::uint64_t bytes_s) {
    GB_TRY_ASSIGN(NetnsScope scope, NetnsScope::enter(home_.get()));
    std::lock_guard lock(mutex_);
    GB_TRY_ASSIGN(int index, links_->index(link_name(number)));
    return links_->limit_rate(index, bytes_s);
}

}  // namespace gb::net
