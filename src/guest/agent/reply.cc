// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/reply.h"

#include <string>

#include <fmt/format.h>

#include "base/error_body.h"
#include "base/error_table.h"

namespace gb::agent {

http::Headers reply_headers(const Exchange& exchange, std::string_view content_type) {
    http::Headers headers;
    if (!content_type.empty()) headers.add("Content-Type", std::string(content_type));
    if (exchange.head.headers.has("Origin")) {
        headers.add("Access-Control-Allow-Origin", "*");
        headers.add("Access-Control-Expose-Headers",
                    "Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Connect-Content-Encoding, Location, "
                    "Cache-Control, X-Content-Type-Options, Content-Disposition");
        headers.add("Vary", "Origin");
    }
    return headers;
}

awaitable<void> reply_json(Exchange& exchange, int status, std::string_view body) {
    http::Headers headers = reply_headers(exchange, "application/json");
    co_await exchange.response.send(status, std::move(headers), body);
}

awaitable<void> reply_empty(Exchange& exchange, int status) {
    http::Headers headers = reply_headers(exchange);
    headers.add("Cache-Control", "no-store");
    co_await exchange.response.send(status, std::move(headers), {});
}

awaitable<void> reply_error(Exchange& exchange, int status, std::string_view message) {
    const std::string body = error_body(status, message);
    co_await reply_json(exchange, status, body);
}

awaitable<void> reply_error(Exchange& exchange, const Error& error) {
    co_await reply_error(exchange, http_status(error.code), error.message);
}

awaitable<void> discard_body(Exchange& exchange) {
    for (;;) {
        const auto piece = co_await exchange.body.next();
        if (!piece || piece->empty()) co_return;
    }
}

awaitable<void> reply_preflight(Exchange& exchange) {
    http::Headers headers;
    const std::string_view asked = exchange.head.headers.get("Access-Control-Request-Headers");
    headers.add("Access-Control-Allow-Origin", "*");
    headers.add("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    headers.add("Access-Control-Allow-Headers", asked.empty() ? "*" : std::string(asked));
    headers.add("Access-Control-Max-Age", "7200");
    headers.add("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
    co_await exchange.response.send(204, std::move(headers), {});
}

}  // namespace gb::agent
