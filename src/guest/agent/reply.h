// SPDX-License-Identifier: Apache-2.0
// Plain HTTP answers of the agent: JSON errors of the contract's form, and CORS for browsers.
#pragma once

#include <string_view>

#include "base/result.h"
#include "http/server.h"

namespace gb::agent {

using http::awaitable;
using http::Exchange;

// Headers for an answer to this request; with the CORS ones when a browser asks.
http::Headers reply_headers(const Exchange& exchange, std::string_view content_type = {});

awaitable<void> reply_json(Exchange& exchange, int status, std::string_view body);
awaitable<void> reply_empty(Exchange& exchange, int status);
// {"code":<status>,"message":"…"}
awaitable<void> reply_error(Exchange& exchange, int status, std::string_view message);
awaitable<void> reply_error(Exchange& exchange, const Error& error);
// An answer before the end of the body reads like a broken connection to many clients: this takes the rest first.
awaitable<void> discard_body(Exchange& exchange);
awaitable<void> reply_preflight(Exchange& exchange);

}  // namespace gb::agent
