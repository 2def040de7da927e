// SPDX-License-Identifier: Apache-2.0
#include "ingress/proxy.h"

#include <algorithm>
#include <array>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"
#include "http/forward.h"
#include "http/pass_body.h"
#include "ingress/signed_url.h"

namespace gb::ingress {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
constexpr auto kFirstRetry = std::chrono::milliseconds(20);  // of a closed port, doubled each time
constexpr std::uint64_t kLeastSplice = 256 * 1024;           // for less a pipe is not worth its while
constexpr auto kLastRetry = std::chrono::milliseconds(320);  // in all about 0.6 s

constexpr std::string_view kTrafficToken = "e2b-traffic-access-token";

// `mask`: the Host that the service sees, "${PORT}" replaced; empty: as the client wrote it.
http::RequestHead forward_head(const http::Exchange& exchange, const Route& route, const std::string& mask,
                               bool upgrade) {
    http::RequestHead head = exchange.head;
    if (head.target.empty() || head.target[0] != '/')
        head.target = exchange.target.raw_target;  // absolute-form
    http::strip_hop_by_hop(head.headers, upgrade);
    head.headers.remove("Content-Length");
    // Keys of the control plane and of the ingress are none of the sandbox's business.
    for (std::string_view name :
         {std::string_view("X-API-Key"), std::string_view("X-Admin-Token"), kTrafficToken})
        head.headers.remove(name);
    std::string peer = exchange.peer.address().to_string();
    std::string_view before = head.headers.get("X-Forwarded-For");
    head.headers.set("X-Forwarded-For", before.empty() ? peer : fmt::format("{}, {}", before, peer));
    if (!head.headers.has("X-Forwarded-Host"))
        head.headers.add("X-Forwarded-Host", std::string(exchange.head.headers.get("Host")));
    if (!mask.empty()) {
        std::string host = mask;
        if (std::size_t at = host.find("${PORT}"); at != std::string::npos)
            host.replace(at, std::string_view("${PORT}").size(), std::to_string(route.port));
        head.headers.set("Host", host);
    }
    if (!head.headers.has("X-Forwarded-Proto"))
        head.headers.add("X-Forwarded-Proto", exchange.tls ? "https" : "http");
    return head;
}

// RFC 9110, 9.2.2: doing it twice is doing it once, and there is no body that is gone with the first try.
bool can_be_repeated(const http::Exchange& exchange) {
    static constexpr std::array<std::string_view, 6> kIdempotent{"GET", "HEAD", "OPTIONS", "TRACE", "DELETE", "PUT"};
    return std::ranges::find(kIdempotent, exchange.head.method) != kIdempotent.end() &&
           http::body_length(exchange.head.headers) == std::uint64_t{0} &&
           !http::wants_upgrade(exchange.head.headers);
}

// Whether a request carries what the agent of this sandbox asks for: the token, or a signature of it.
bool agent_would_take(const http::Exchange& exchange, const Destination& destination) {
    if (destination.access_token.empty()) return true;
    if (constant_time_equal(exchange.head.headers.get("X-Access-Token"), destination.access_token)) return true;
    const auto signed_url = signed_request(exchange);
    return signed_url && check_signature(signed_url->query(), signed_url->operation, destination.access_token,
                                         now_ms() / 1000);
}

enum class Outcome { complete, upgraded, no_answer, cut };

awaitable<Outcome> pump_response(http::Exchange& exchange, http::ClientConnection& upstream,
                                 http::ResponseHead& upgraded) {
    co_await asio::this_coro::throw_if_cancelled(false);
    const auto cancellation = co_await asio::this_coro::cancellation_state;
    auto over = [&] { return cancellation.cancelled() != asio::cancellation_type::none; };
    auto head = co_await upstream.read_head();
    if (!head) co_return Outcome::no_answer;
    if (over()) co_return Outcome::cut;
    if (head->status == 101) {
        upgraded = *std::move(head);
        co_return Outcome::upgraded;
    }
    std::optional<std::uint64_t> length;
    if (head->headers.has("Content-Length")) length = http::body_length(head->headers);
    http::strip_hop_by_hop(head->headers, false);
    head->headers.remove("Content-Length");
    if (!co_await exchange.response.start(head->status, std::move(head->headers), length))
        co_return Outcome::cut;
    for (;;) {
        if (const std::uint64_t bare = upstream.bare_body(); bare >= kLeastSplice) {
            auto moved = co_await exchange.response.write_from(upstream.socket(), bare);
            if (!moved || over()) co_return Outcome::cut;
            upstream.took_bare(*moved);
            if (*moved > 0) continue;
        }
        auto piece = co_await upstream.next();
        if (!piece || over()) co_return Outcome::cut;
        if (piece->empty()) break;
        if (!co_await exchange.response.write(*piece)) co_return Outcome::cut;
    }
    co_await exchange.response.finish();
    co_return Outcome::complete;
}

awaitable<void> copy(http::Stream& from, http::Stream& to) {
    co_await asio::this_coro::throw_if_cancelled(false);
    auto buffer = std::make_unique<std::array<char, 65536>>();
    for (;;) {
        auto [ec, n] = co_await from.read_some(asio::buffer(*buffer));
        if (ec) break;
        auto [write_ec, written] = co_await to.write(asio::buffer(buffer->data(), n));
        if (write_ec) break;
    }
    co_await to.shutdown_send();  // the other direction may go on
}

awaitable<void> send_reply(http::Exchange& exchange, const Reply& reply) {
    co_await exchange.response.send(reply.status, {{"Content-Type", reply.content_type}}, reply.body);
}

}  // namespace

awaitable<std::optional<Reply>> Proxy::admit(const http::Exchange& exchange, const Route& route,
                                             bool browser) {
    std::optional<Destination> destination = sandboxes_.destination(route.sandbox_id);
    if (!destination) co_return sandbox_not_found(route.sandbox_id, browser);
    const http::Headers& headers = exchange.head.headers;
    const bool agent = route.port == kAgentPort;  // has a token of its own
    if (!agent && !destination->traffic_token.empty()) {
        const std::string* token = headers.find(kTrafficToken);
        if (token == nullptr) co_return token_refused(route, BadToken::missing, browser);
        if (!constant_time_equal(*token, destination->traffic_token))
            co_return token_refused(route, BadToken::invalid, browser);
    }
    if (destination->state == Destination::State::running) co_return std::nullopt;
    // Nobody wakes it who could not use it either.
    const bool may_wake = !agent || agent_would_take(exchange, *destination);
    // /health needs no token, so there is nothing to refuse: it says that the sandbox does not run.
    if (!may_wake && destination->wakes && exchange.target.path != "/health")
        co_return access_refused(route, browser);
    Status woken = co_await sandboxes_.wake(
        route.sandbox_id, may_wake ? Sandboxes::Waking::allowed : Sandboxes::Waking::refused);
    if (woken) co_return std::nullopt;
    if (woken.error().code == ErrorCode::not_found) co_return sandbox_not_found(route.sandbox_id, browser);
    log::warn("traffic could not wake a sandbox",
              {{"sandbox", route.sandbox_id}, {"error", woken.error().message}});
    co_return not_ready(route, woken.error(), browser);
}

// A service that is just starting has a moment to open its port.
awaitable<Result<std::unique_ptr<Upstreams::Lease>>> Proxy::reach(const Route& route, Upstreams::Kept kept) {
    asio::steady_timer pause(co_await asio::this_coro::executor);
    for (auto wait = kFirstRetry;; wait *= 2) {
        auto lease = co_await upstreams_.acquire(route, kept);
        if (lease || lease.error().code != ErrorCode::unavailable || wait > kLastRetry ||
            route.port == kAgentPort || !sandboxes_.is_running(route.sandbox_id))
            co_return lease;
        pause.expires_after(wait);
        co_await pause.async_wait(asio::use_awaitable);
    }
}

awaitable<void> Proxy::handle(http::Exchange& exchange, Route route) {
    const bool browser = is_browser(exchange.head.headers.get("User-Agent"));
    if (route.port == kAgentPort && !agent_path_is_public(exchange.target.path))
        co_return co_await send_reply(exchange, reserved_path());
    if (auto refused = co_await admit(exchange, route, browser))
        co_return co_await send_reply(exchange, *refused);
    // A service may close a kept connection at any moment. What cannot be repeated never goes out on one; what can be is
    // sent again on a new one. The agent keeps its own for longer than the ingress does (upstreams.cc).
    const bool repeatable = can_be_repeated(exchange);
    auto kept = repeatable || route.port == kAgentPort ? Upstreams::Kept::allowed : Upstreams::Kept::refused;
    for (;; kept = Upstreams::Kept::refused) {
        auto lease = co_await reach(route, kept);
        if (!lease) {
            bool gone =
                lease.error().code == ErrorCode::not_found || !sandboxes_.is_running(route.sandbox_id);
            co_return co_await send_reply(
                exchange, gone ? sandbox_not_found(route.sandbox_id, browser) : port_not_open(route, browser));
        }
        // It may have ended while the connection was made; from here on a cut finds the lease.
        const std::optional<Destination> destination = sandboxes_.destination(route.sandbox_id);
        if (!destination || destination->state != Destination::State::running)
            co_return co_await send_reply(exchange, sandbox_not_found(route.sandbox_id, browser));
        const std::string mask = route.port == kAgentPort ? std::string() : destination->mask_request_host;
        if (co_await pass(exchange, route, mask, *std::move(lease), repeatable) == Passed::answered) co_return;
    }
}

awaitable<Proxy::Passed> Proxy::pass(http::Exchange& exchange, const Route& route, const std::string& host_mask,
                                     std::unique_ptr<Upstreams::Lease> lease, bool repeatable) {
    using namespace asio::experimental::awaitable_operators;
    http::ClientConnection& upstream = lease->connection();
    const bool upgrade = http::wants_upgrade(exchange.head.headers);
    const std::optional<std::uint64_t> length = http::body_length(exchange.head.headers);
    Outcome outcome = Outcome::no_answer;
    http::ResponseHead upgraded;
    if (co_await upstream.start(forward_head(exchange, route, host_mask, upgrade), length)) {
        auto result = co_await (http::pass_body(exchange, upstream, !length || *length > 0) ||
                                pump_response(exchange, upstream, upgraded));
        outcome = result.index() == 1 ? std::get<1>(result) : Outcome::cut;
        if (outcome == Outcome::upgraded && !upgrade) outcome = Outcome::no_answer;  // nobody asked for it
    }
    switch (outcome) {
        case Outcome::complete:
            upstreams_.give_back(std::move(lease));
            co_return Passed::answered;
        case Outcome::upgraded: {
            std::string from_client, from_sandbox;
            http::strip_hop_by_hop(upgraded.headers, true);
            auto client = co_await exchange.response.upgrade(std::move(upgraded), from_client);
            if (!client) co_return Passed::answered;
            http::TcpStream sandbox(upstream.take_socket(from_sandbox));
            lease->track(&sandbox, client->get());
            co_await sandbox.write(asio::buffer(from_client));
            co_await (*client)->write(asio::buffer(from_sandbox));
            co_await (copy(**client, sandbox) && copy(sandbox, **client));
            lease->track(nullptr, nullptr);
            co_return Passed::answered;
        }
        case Outcome::no_answer: {
            if (repeatable && lease->kept() && !lease->was_cut() && !upstream.heard()) co_return Passed::unheard;
            const bool browser = is_browser(exchange.head.headers.get("User-Agent"));
            bool gone = lease->was_cut() || !sandboxes_.is_running(route.sandbox_id);
            co_await send_reply(exchange, gone ? sandbox_not_found(route.sandbox_id, browser)
                                               : port_not_open(route, browser));
            co_return Passed::answered;
        }
        case Outcome::cut:
            break;
    }
    exchange.response.abort();
    co_return Passed::answered;
}

}  // namespace gb::ingress
