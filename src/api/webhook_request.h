// SPDX-License-Identifier: Apache-2.0
// Reads what a client wants of a webhook (contract 7.10). Pure.
#pragma once

#include <string_view>

#include "base/result.h"
#include "store/records.h"

namespace gb::api {

enum class WebhookRequest {
    create,  // name, url, events and signatureSecret are needed
    change,  // only what is given changes
};

Status apply_webhook_request(std::string_view body, WebhookRequest kind, Webhook& webhook);

}  // namespace gb::api
