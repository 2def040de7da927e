// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_world.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>

#include "base/file.h"
#include "base/ids.h"
#include "net/links.h"
#include "net/netns.h"

namespace gb::cli {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::uint32_t kRange = 0xCB007100;  // 203.0.113.0/24
constexpr int kPrefix = 30;                   // two addresses each: the host's and the server's
constexpr std::uint32_t kPairs = 64;
constexpr std::uint16_t kPort = 8080;

// The host's address of a pair that no other run uses; the server's is the next one.
Result<net::Ipv4> free_pair(net::Links& links) {
    GB_TRY_ASSIGN(const auto used, links.addresses());
    const auto first = static_cast<std::uint32_t>(static_cast<unsigned char>(random_bytes(1)[0]));
    for (std::uint32_t i = 0; i < kPairs; ++i) {
        const net::Ipv4 address{kRange + (first + i) % kPairs * 4 + 1};
        if (std::ranges::find(used, address) == used.end()) return address;
    }
    return fail(
        ErrorCode::resource_exhausted,
        "all of 203.0.113.0/24 is in use: end the other demos, or remove those addresses from this machine");
}

}  // namespace

DemoWorld::DemoWorld(const asio::any_io_executor& executor, UniqueFd log)
    : log_(std::move(log)), server_(executor, [this](http::Exchange& exchange) -> asio::awaitable<void> {
          (void)write_all(log_.get(), fmt::format("{} {} {}\n", exchange.peer.address().to_string(),
                                                  exchange.head.method, exchange.head.target));
          co_await exchange.response.send(200, {{"Content-Type", "text/plain"}},
                                          fmt::format("{}\n", kAnswer));
      }) {}

DemoWorld::~DemoWorld() {
    server_.stop();
    // The kernel removes it with the namespace too, but at its leisure.
    if (auto links = net::Links::open(); links && !link_.empty()) (void)links->remove(link_);
}

Result<std::unique_ptr<DemoWorld>> DemoWorld::start(const asio::any_io_executor& executor,
                                                    const std::filesystem::path& log) {
    GB_TRY_ASSIGN(UniqueFd file, open_file(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644));
    std::unique_ptr<DemoWorld> world(new DemoWorld(executor, std::move(file)));
    if (Status opened = world->open(); !opened)
        return std::unexpected(opened.error().with("the demo's outside world cannot be made"));
    return world;
}

Status DemoWorld::open() {
    GB_TRY_ASSIGN(netns_, net::create_netns());
    GB_TRY_ASSIGN(net::Links host, net::Links::open());
    GB_TRY_ASSIGN(const net::Ipv4 near, free_pair(host));
    const net::Ipv4 far{near.value + 1};
    const std::string tag = random_id(6);
    const std::string outer = fmt::format("demo{}h", tag), inner = fmt::format("demo{}n", tag);
    GB_TRY(host.add_veth({.name = outer}, {.name = inner, .netns_fd = netns_.get()}));
    link_ = outer;
    GB_TRY_ASSIGN(const int index, host.index(outer));
    GB_TRY(host.add_address(index, near, kPrefix));
    GB_TRY(host.set_up(index));

    GB_TRY_ASSIGN(auto inside, net::NetnsScope::enter(netns_.get()));
    GB_TRY_ASSIGN(net::Links links, net::Links::open());
    GB_TRY_ASSIGN(const int there, links.index(inner));
    GB_TRY_ASSIGN(const int loopback, links.index("lo"));
    GB_TRY(links.add_address(there, far, kPrefix));
    GB_TRY(links.set_up(there));
    GB_TRY(links.set_up(loopback));
    GB_TRY(links.add_default_route(near, there));
    // A socket stays in the namespace that it was made in.
    GB_TRY_ASSIGN(endpoint_, server_.listen({asio::ip::make_address_v4(far.value), kPort}));
    return {};
}

std::string DemoWorld::url() const {
    return fmt::format("http://{}:{}/", address(), endpoint_.port());
}

}  // namespace gb::cli
