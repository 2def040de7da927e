// SPDX-License-Identifier: Apache-2.0
#include "control/webhook_target.h"

#include <algorithm>
#include <chrono>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/url/parse.hpp>
#include <fmt/format.h>

#include "control/public_address.h"

namespace gb {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::seconds kResolveLimit{5};  // of a request: beyond it nothing is known of the name

std::unexpected<Error> refused(std::string_view what) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("validation error: field 'url' {}, and nothing would be delivered there; the operator of this "
                            "server can allow it with allow_private = true in the section [webhooks] of its configuration",
                            what));
}

}  // namespace

asio::awaitable<Status> check_webhook_target(std::string url) {
    using namespace asio::experimental::awaitable_operators;
    const auto parsed = boost::urls::parse_uri(url);
    if (!parsed) co_return fail(ErrorCode::invalid_argument, "validation error: field 'url' is not a URL");
    const std::string host = parsed->host_address();  // an IPv6 address without its brackets
    boost::system::error_code ec;
    if (const asio::ip::address address = asio::ip::make_address(host, ec); !ec) {
        if (is_public_address(address)) co_return Status{};
        co_return refused("names an address that is not public");
    }
    const auto executor = co_await asio::this_coro::executor;
    tcp::resolver resolver(executor);
    asio::steady_timer limit(executor, kResolveLimit);
    auto first = co_await (resolver.async_resolve(host, "", kToken) || limit.async_wait(kToken));
    if (first.index() == 1) co_return Status{};
    const auto& [failed, found] = std::get<0>(first);
    if (failed || found.empty()) co_return Status{};
    if (std::ranges::any_of(found, [](const auto& entry) { return is_public_address(entry.endpoint().address()); }))
        co_return Status{};
    co_return refused("leads to addresses that are not public");
}

}  // namespace gb
