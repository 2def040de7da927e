// SPDX-License-Identifier: Apache-2.0
#include "ingress/signed_url.h"

#include "node/node.h"

namespace gb::ingress {

std::optional<SignedRequest> signed_request(const http::Exchange& exchange) {
    const http::Target& target = exchange.target;
    const std::string* signature = target.find("signature");
    if (target.path != "/files" || signature == nullptr) return std::nullopt;
    return SignedRequest{.path = target.get("path"),
                         .username = target.get("username"),
                         .signature = signature,
                         .expiration = target.find("signature_expiration"),
                         .operation = exchange.head.method == "POST" ? FileOperation::write : FileOperation::read};
}

Result<std::optional<Route>> find_signed_route(const http::Exchange& exchange, const Sandboxes& sandboxes) {
    const auto request = signed_request(exchange);
    if (!request) return std::nullopt;
    const auto id = sandboxes.find_by_token([&](std::string_view token) {
        return made_signature(request->query(), request->operation, token);
    });
    if (!id) return fail(ErrorCode::unauthenticated, "invalid signature");
    return Route{*id, kAgentPort};
}

}  // namespace gb::ingress
