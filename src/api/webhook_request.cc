// SPDX-License-Identifier: Apache-2.0
#include "api/webhook_request.h"

#include <algorithm>

#include <boost/url/parse.hpp>
#include <fmt/format.h>

#include "api/fields.h"
#include "control/events.h"

namespace gb::api {
namespace {

std::unexpected<Error> wrong_field(std::string_view field, std::string_view what) {
    return fail(ErrorCode::invalid_argument, fmt::format("validation error: field '{}' {}", field, what));
}

Status check_url(const std::string& text) {
    auto url = boost::urls::parse_uri(text);
    if (text.size() > 2048 || !url || (url->scheme() != "http" && url->scheme() != "https") || url->host().empty())
        return wrong_field("url", "must be an http or https URL");
    if (url->has_userinfo()) return wrong_field("url", "must not hold a user name or password");
    return {};
}

}  // namespace

Status apply_webhook_request(std::string_view body, WebhookRequest kind, Webhook& webhook) {
    GB_TRY_ASSIGN(boost::json::object object, parse_object(body, false));
    Fields fields(object);
    GB_TRY_ASSIGN(auto name, fields.text("name"));
    GB_TRY_ASSIGN(auto url, fields.text("url"));
    GB_TRY_ASSIGN(auto enabled, fields.boolean("enabled"));
    GB_TRY_ASSIGN(auto events, fields.texts("events"));
    GB_TRY_ASSIGN(auto secret, fields.text("signatureSecret"));
    if (kind == WebhookRequest::create) {
        for (auto [field, given] : {std::pair("name", name.has_value()), std::pair("url", url.has_value()),
                                    std::pair("signatureSecret", secret.has_value()),
                                    std::pair("events", fields.has("events"))})
            if (!given) return wrong_field(field, "is required");
    }
    if (name) {
        if (name->empty() || name->size() > 128) return wrong_field("name", "must have 1 to 128 characters");
        webhook.name = *name;
    }
    if (url) {
        GB_TRY(check_url(*url));
        webhook.url = *url;
    }
    if (secret) {
        if (secret->empty() || secret->size() > 1024) return wrong_field("signatureSecret", "must have 1 to 1024 characters");
        webhook.secret = *secret;
    }
    if (enabled) webhook.enabled = *enabled;
    if (fields.has("events")) {
        for (const std::string& event : events)
            if (std::ranges::find(kEventTypes, event) == kEventTypes.end())
                return wrong_field("events", fmt::format("lists '{}', which is no type of event", event));
        if (events.empty()) return wrong_field("events", "must list at least one type of event");
        std::ranges::sort(events);
        events.erase(std::unique(events.begin(), events.end()), events.end());
        webhook.events = std::move(events);
    }
    return {};
}

}  // namespace gb::api
