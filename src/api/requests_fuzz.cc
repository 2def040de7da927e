// SPDX-License-Identifier: Apache-2.0
// The other bodies and parameters of the control plane.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "api/decision_query.h"
#include "api/parameters.h"
#include "api/secret_json.h"
#include "api/webhook_request.h"

namespace {

using namespace gb;

void check_webhook(const std::string& body) {
    for (auto kind : {api::WebhookRequest::create, api::WebhookRequest::change}) {
        Webhook webhook;
        const Status status = api::apply_webhook_request(body, kind, webhook);
        if (!status) {
            if (status.error().code != ErrorCode::invalid_argument) std::abort();
            continue;
        }
        if (kind == api::WebhookRequest::create && (webhook.url.empty() || webhook.events.empty()))
            std::abort();
        if (webhook.url.find_first_of("\r\n ") != std::string::npos) std::abort();
    }
}

void check_secret(const std::string& body) {
    for (auto kind : {api::SecretRequest::create, api::SecretRequest::update}) {
        const auto secret = api::parse_secret(body, kind);
        if (!secret && secret.error().code != ErrorCode::invalid_argument) std::abort();
        if (secret && secret->value.empty()) std::abort();
    }
}

void check_parameters(const std::string& query) {
    auto target = http::parse_target("/x?" + query);
    if (!target) return;
    if (auto limit = api::page_limit(*target); limit && (*limit < 1 || *limit > 100)) std::abort();
    if (auto asked = api::parse_decision_query(*target); asked && asked->limit == 0U) std::abort();
    if (auto window = api::time_window(*target, 1'700'000'000'000, 3'600'000);
        window && (window->from_ms > window->to_ms))
        std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    check_webhook(text);
    check_webhook(R"({"name":"n","signatureSecret":"s","events":["sandbox.lifecycle.killed"],"url":")" +
                  text + "\"}");
    check_secret(text);
    check_secret(R"({"name":"n","value":"v","metadata":{)" + text + "}}");
    check_parameters(text);
    return 0;
}
