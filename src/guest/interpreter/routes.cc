// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/routes.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "guest/interpreter/language.h"
#include "guest/interpreter/output_line.h"
#include "guest/interpreter/request_body.h"

namespace gb::interpreter {
namespace {

using namespace std::chrono_literals;
using http::Exchange;

constexpr std::size_t kMaxBody = 64UL << 20;
constexpr std::chrono::milliseconds kKeepalive = 5s;

http::Headers headers(std::string_view content_type) {
    http::Headers all{{"Access-Control-Allow-Origin", "*"}};
    if (!content_type.empty()) all.add("Content-Type", std::string(content_type));
    return all;
}

awaitable<void> send(Exchange& exchange, int status, std::string_view content_type, std::string_view body) {
    (void)co_await exchange.response.send(status, headers(content_type), body);
}

awaitable<void> send_json(Exchange& exchange, int status, std::string body) {
    co_await send(exchange, status, "application/json", body);
}

awaitable<void> send_text(Exchange& exchange, int status, std::string body) {
    co_await send(exchange, status, "text/plain; charset=utf-8", body);
}

awaitable<void> send_detail(Exchange& exchange, int status, std::string_view detail) {
    co_await send_json(exchange, status, fmt::format(R"({{"detail":{}}})", log::json_quote(detail)));
}

// Contract 4.1 knows 404 for a context that is not there and 500 for one that cannot be.
awaitable<void> send_failure(Exchange& exchange, const Error& error) {
    co_await send_text(exchange, error.code == ErrorCode::not_found ? 404 : 500, error.message);
}

awaitable<void> send_bad_body(Exchange& exchange, const Error& error) {
    if (error.code == ErrorCode::too_large) co_return co_await send_text(exchange, 413, error.message);
    co_await send_detail(exchange, 422, error.message);
}

awaitable<void> preflight(Exchange& exchange) {
    http::Headers all = headers("");
    const std::string* wanted = exchange.head.headers.find("Access-Control-Request-Headers");
    all.add("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
    all.add("Access-Control-Allow-Headers", wanted != nullptr ? *wanted : "*");
    all.add("Access-Control-Max-Age", "600");
    (void)co_await exchange.response.send(204, std::move(all), "");
}

std::string context_json(const Context& context) {
    return fmt::format(R"({{"id":{},"language":{},"cwd":{}}})", log::json_quote(context.id()),
                       log::json_quote(context.language()), log::json_quote(context.cwd()));
}

// Writes lines as they come until the last one is out. False when the client cannot be reached any more.
awaitable<bool> write_lines(Exchange& exchange, std::shared_ptr<OutputStream> output) {
    for (;;) {
        std::optional<std::string> lines = co_await output->take(kKeepalive);
        if (!lines) lines = keepalive_line();
        if (lines->empty()) break;
        if (!co_await exchange.response.write(*lines)) co_return false;
    }
    Status finished = co_await exchange.response.finish();
    co_return finished.has_value();
}

}  // namespace

awaitable<void> Routes::handle(Exchange& exchange) {
    const std::string method = exchange.head.method == "HEAD" ? "GET" : exchange.head.method;
    const std::vector<std::string> path = exchange.target.segments();
    const std::string first = path.empty() ? "" : path[0];
    if (method == "OPTIONS") co_return co_await preflight(exchange);
    if (first == "health" && path.size() == 1) {
        if (method == "GET") co_return co_await health(exchange);
    } else if (first == "execute" && path.size() == 1) {
        if (method == "POST") co_return co_await execute(exchange);
    } else if (first == "contexts" && path.size() == 1) {
        if (method == "GET") co_return co_await list_contexts(exchange);
        if (method == "POST") co_return co_await create_context(exchange);
    } else if (first == "contexts" && path.size() == 2) {
        if (method == "DELETE") co_return co_await remove_context(exchange, path[1]);
    } else if (first == "contexts" && path.size() == 3 && path[2] == "restart") {
        if (method == "POST") co_return co_await restart_context(exchange, path[1]);
    } else {
        co_return co_await send_detail(exchange, 404, "Not Found");
    }
    co_await send_detail(exchange, 405, "Method Not Allowed");
}

awaitable<void> Routes::health(Exchange& exchange) {
    if (contexts_.ready()) co_return co_await send_json(exchange, 200, "\"OK\"");
    co_await send_json(exchange, 503, contexts_.startup());
}

awaitable<void> Routes::execute(Exchange& exchange) {
    auto body = co_await exchange.body.read_all(kMaxBody);
    if (!body) co_return co_await send_bad_body(exchange, body.error());
    auto request = parse_execute_request(*body);
    if (!request) co_return co_await send_bad_body(exchange, request.error());
    if (request->context_id && request->language)
        co_return co_await send_text(exchange, 400, "Only one of context_id or language can be provided");

    Result<std::shared_ptr<Context>> context = fail(ErrorCode::internal, "");
    Job job{.code = std::move(request->code),
            .language = "",
            .env = std::move(request->env_vars),
            .store_history = request->store_history};
    if (request->context_id) {
        context = contexts_.find(*request->context_id);
    } else {
        job.language = normalize_language(request->language.value_or("python"));
        context = co_await contexts_.default_for(job.language);
    }
    if (!context) co_return co_await send_failure(exchange, context.error());

    if (!co_await exchange.response.start(200, headers(""))) co_return;
    std::shared_ptr<OutputStream> output = (*context)->submit(std::move(job));
    using namespace asio::experimental::awaitable_operators;
    co_await (write_lines(exchange, output) || exchange.response.peer_closed());
    output->abandon();  // nothing happens when it has ended
}

awaitable<void> Routes::create_context(Exchange& exchange) {
    auto body = co_await exchange.body.read_all(kMaxBody);
    if (!body) co_return co_await send_bad_body(exchange, body.error());
    auto request = parse_create_context_request(*body);
    if (!request) co_return co_await send_bad_body(exchange, request.error());
    auto context = co_await contexts_.create(normalize_language(request->language), request->cwd);
    if (!context) co_return co_await send_failure(exchange, context.error());
    co_await send_json(exchange, 200, context_json(**context));
}

awaitable<void> Routes::list_contexts(Exchange& exchange) {
    std::string list;
    for (const std::shared_ptr<Context>& context : contexts_.all()) {
        if (!list.empty()) list += ',';
        list += context_json(*context);
    }
    co_await send_json(exchange, 200, "[" + list + "]");
}

awaitable<void> Routes::restart_context(Exchange& exchange, std::string id) {
    auto context = contexts_.find(id);
    if (!context) co_return co_await send_failure(exchange, context.error());
    Status status = co_await (*context)->restart();
    if (!status) co_return co_await send_failure(exchange, status.error());
    co_await send_json(exchange, 200, "null");
}

awaitable<void> Routes::remove_context(Exchange& exchange, std::string id) {
    Status status = contexts_.remove(id);
    if (!status) co_return co_await send_failure(exchange, status.error());
    co_await send_json(exchange, 200, "null");
}

}  // namespace gb::interpreter
