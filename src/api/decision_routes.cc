// SPDX-License-Identifier: Apache-2.0
// Where a sandbox tried to go and what was decided, also of one that is gone. Ours: the contract has none.
#include <chrono>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "api/api.h"
#include "api/decision_query.h"
#include "base/error_tuple.h"
#include "base/offload.h"

namespace gb::api {
namespace {

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;

constexpr std::size_t kDefaultLimit = 1000;
constexpr auto kPoll = std::chrono::milliseconds(200);
constexpr auto kKeepAlive = std::chrono::seconds(15);

// The id of a sandbox that the team has or had.
http::awaitable<Result<std::string>> own_sandbox(Services services, Call& call) {
    const auto view = services.sandboxes.get(call.team, call.params["id"]);
    if (view) co_return view->record.id;
    std::string id = Sandboxes::canonical_id(call.params["id"]);
    GB_CO_TRY_ASSIGN(const auto team,
                     co_await offload(services.pool, [&] { return services.store.team_of_sandbox(id); }));
    if (team != call.team.id) co_return std::unexpected(view.error());
    co_return id;
}

PageSource pages_of(Services services, std::string id) {
    return [=](const std::string& after, std::size_t limit) {
        return services.sandboxes.node().decisions_after(id, after, limit);
    };
}

http::awaitable<Status> send_list(Services services, Call& call, std::string id, DecisionQuery query) {
    const std::size_t limit = query.limit.value_or(kDefaultLimit);
    GB_CO_TRY_ASSIGN(const DecisionPage page, co_await offload(services.pool, [&] {
                         const PageSource source = pages_of(services, id);
                         return query.after ? first_lines(source, *query.after, limit, query.verdict)
                                            : last_lines(source, limit, query.verdict);
                     }));
    std::string body = "[";
    for (const std::string& line : page.lines) {
        if (body.size() > 1) body += ",";
        body += line;
    }
    http::Headers headers{{"Content-Type", "application/json"}};
    if (query.after) headers.add("X-Next-After", page.next);
    co_return co_await call.exchange.response.send(200, std::move(headers), body + "]");
}

// Ends when the client leaves, or when the sandbox is gone and all of its lines were sent.
http::awaitable<Status> send_as_they_come(Services services, Call& call, std::string id,
                                          DecisionQuery query) {
    const PageSource source = pages_of(services, id);
    // As many of the last ones as were asked for, or all that follow a cursor, or all.
    Result<DecisionPage> page = DecisionPage{{}, query.after.value_or("")};
    if (query.limit && !query.after)
        page =
            co_await offload(services.pool, [&] { return last_lines(source, *query.limit, query.verdict); });
    else  // a cursor that is none is an error while there can be one
        page = co_await offload(services.pool,
                                [&] { return first_lines(source, page->next, kDecisionPage, query.verdict); });
    if (!page) co_return std::unexpected(page.error());
    http::ResponseWriter& response = call.exchange.response;
    GB_CO_TRY(co_await response.start(
        200, {{"Content-Type", "application/x-ndjson"}, {"Cache-Control", "no-store"}}));
    asio::steady_timer pause(co_await asio::this_coro::executor);
    auto silent_since = std::chrono::steady_clock::now();
    bool gone = false;
    for (;;) {
        for (const std::string& line : page->lines) GB_CO_TRY(co_await response.write(line + "\n"));
        if (!page->lines.empty()) {
            silent_since = std::chrono::steady_clock::now();
        } else {
            if (gone) break;
            if (std::chrono::steady_clock::now() - silent_since >= kKeepAlive) {
                GB_CO_TRY(co_await response.write("\n"));
                silent_since = std::chrono::steady_clock::now();
            }
            pause.expires_after(kPoll);
            const auto left =
                co_await (pause.async_wait(kErrorTuple) || response.peer_closed());
            if (left.index() == 1) {
                response.abort();
                co_return Status{};
            }
        }
        gone = !services.sandboxes.get(call.team, id);  // before the read: what follows it is the rest
        const std::string after = page->next;
        page =
            co_await offload(services.pool, [&] { return first_lines(source, after, kDecisionPage, query.verdict); });
        if (!page) {
            response.abort();  // a stream that is cut, not one that is complete
            co_return std::unexpected(page.error());
        }
    }
    co_return co_await response.finish();
}

Handler decisions(Services services) {
    return [=](Call& call) -> http::awaitable<Status> {
        GB_CO_TRY_ASSIGN(DecisionQuery query, parse_decision_query(call.exchange.target));
        GB_CO_TRY_ASSIGN(std::string id, co_await own_sandbox(services, call));
        if (query.follow)
            co_return co_await send_as_they_come(services, call, std::move(id), std::move(query));
        co_return co_await send_list(services, call, std::move(id), std::move(query));
    };
}

}  // namespace

void add_decision_routes(Router& router, Services services) {
    router.add("GET", "/glovebox/sandboxes/{id}/egress", decisions(services));
}

}  // namespace gb::api
