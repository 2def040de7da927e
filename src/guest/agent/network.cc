// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <charconv>
#include <cstring>

#include <arpa/inet.h>
#include <net/if.h>
#include <net/route.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <unistd.h>

#include "guest/agent/system_setup.h"

namespace gb::agent {
namespace {

void set_address(sockaddr& where, in_addr_t address) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = address;
    std::memcpy(&where, &in, sizeof in);
}

ifreq request_for(const char* interface) {
    ifreq request{};
    std::strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
    return request;
}

Status bring_up(int socket, const char* interface) {
    ifreq request = request_for(interface);
    if (::ioctl(socket, SIOCGIFFLAGS, &request) != 0) return fail_errno(fmt::format("find {}", interface));
    request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
    if (::ioctl(socket, SIOCSIFFLAGS, &request) != 0)
        return fail_errno(fmt::format("bring up {}", interface));
    return {};
}

}  // namespace

std::string kernel_parameter(std::string_view line, std::string_view key) {
    while (!line.empty()) {
        const std::size_t end = std::min(line.size(), line.find_first_of(" \n"));
        const std::string_view word = line.substr(0, end);
        line.remove_prefix(std::min(line.size(), end + 1));
        if (word.size() > key.size() && word.starts_with(key) && word[key.size()] == '=')
            return std::string(word.substr(key.size() + 1));
    }
    return {};
}

Result<std::optional<NetworkPlan>> parse_network_plan(std::string_view command_line) {
    const std::string address = kernel_parameter(command_line, "glovebox.ip");
    if (address.empty()) return std::nullopt;
    NetworkPlan plan;
    const std::size_t slash = address.find('/');
    plan.address = address.substr(0, slash);
    plan.prefix = 32;
    if (slash != std::string::npos) {
        const char* end = address.data() + address.size();
        auto [stop, ec] = std::from_chars(address.data() + slash + 1, end, plan.prefix);
        if (ec != std::errc{} || stop != end) plan.prefix = 33;
    }
    plan.gateway = kernel_parameter(command_line, "glovebox.gw");
    in_addr parsed{};
    if (plan.prefix > 32 || ::inet_pton(AF_INET, plan.address.c_str(), &parsed) != 1)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("glovebox.ip={}: not an address with a prefix", address));
    if (!plan.gateway.empty() && ::inet_pton(AF_INET, plan.gateway.c_str(), &parsed) != 1)
        return fail(ErrorCode::invalid_argument, fmt::format("glovebox.gw={}: not an address", plan.gateway));
    return plan;
}

Status set_up_network(const std::optional<NetworkPlan>& plan) {
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket) return fail_errno("open a socket");
    GB_TRY(bring_up(socket.get(), "lo"));
    if (!plan) return {};
    ifreq request = request_for("eth0");
    set_address(request.ifr_addr, ::inet_addr(plan->address.c_str()));
    if (::ioctl(socket.get(), SIOCSIFADDR, &request) != 0) return fail_errno("set the address of eth0");
    const std::uint32_t mask = plan->prefix == 0 ? 0 : ~std::uint32_t{0} << (32 - plan->prefix);
    set_address(request.ifr_netmask, htonl(mask));
    if (::ioctl(socket.get(), SIOCSIFNETMASK, &request) != 0) return fail_errno("set the netmask of eth0");
    GB_TRY(bring_up(socket.get(), "eth0"));
    if (plan->gateway.empty()) return {};
    rtentry route{};
    set_address(route.rt_dst, INADDR_ANY);
    set_address(route.rt_genmask, INADDR_ANY);
    set_address(route.rt_gateway, ::inet_addr(plan->gateway.c_str()));
    route.rt_flags = RTF_UP | RTF_GATEWAY;
    if (::ioctl(socket.get(), SIOCADDRT, &route) != 0 && errno != EEXIST)
        return fail_errno("set the default route");
    return {};
}

}  // namespace gb::agent
