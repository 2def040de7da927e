// SPDX-License-Identifier: Apache-2.0
#include "control/webhook_target.h"

#include <algorithm>
#include <chrono>

#include <boost/url/parse.hpp>
#include <fmt/format.h>

#include "control/host_lookup.h"
#include "control/public_address.h"

namespace gb {
namespace {

namespace asio = boost::asio;
constexpr std::chrono::seconds kResolveLimit{5};  // of a request: beyond it nothing is known of the name

std::unexpected<Error> refused_target(std::string_view what) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("validation error: field 'url' {}, and nothing would be delivered there; the operator of this "
                            "server can allow it with allow_private = true in the section [webhooks] of its configuration",
                            what));
}

}  // namespace

asio::awaitable<Result<std::string>> check_webhook_target(std::string url, PrivateTargets rule) {
    const auto parsed = boost::urls::parse_uri(url);
    if (!parsed) co_return fail(ErrorCode::invalid_argument, "validation error: field 'url' is not a URL");
    const std::string host = parsed->host_address();  // an IPv6 address without its brackets
    const auto may_go_to = [rule](const asio::ip::address& address) {
        return rule == PrivateTargets::allowed || is_public_address(address);
    };
    boost::system::error_code ec;
    if (const asio::ip::address address = asio::ip::make_address(host, ec); !ec) {
        if (may_go_to(address)) co_return std::string();
        co_return refused_target("names an address that is not public");
    }
    const auto found = co_await look_up_host(host, kResolveLimit);
    if (!found)
        co_return fmt::format("the name '{}' cannot be resolved now ({}): until it can, deliveries fail and are tried again",
                              host, found.error().message);
    if (std::ranges::any_of(*found, may_go_to)) co_return std::string();
    co_return refused_target("leads to addresses that are not public");
}

}  // namespace gb
