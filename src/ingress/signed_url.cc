// SPDX-License-Identifier: Apache-2.0
#include "ingress/signed_url.h"

#include "base/file_signature.h"
#include "node/node.h"

namespace gb::ingress {

Result<std::optional<Route>> find_signed_route(const http::Exchange& exchange, const Sandboxes& sandboxes) {
    const http::Target& target = exchange.target;
    const std::string* signature = target.find("signature");
    if (target.path != "/files" || signature == nullptr) return std::nullopt;
    const std::string path = target.get("path");
    const std::string username = target.get("username");
    const SignedQuery query{.path = path,
                            .username = username,
                            .signature = signature,
                            .expiration = target.find("signature_expiration")};
    const FileOperation operation =
        exchange.head.method == "POST" ? FileOperation::write : FileOperation::read;
    const auto id = sandboxes.find_by_token(
        [&](std::string_view token) { return made_signature(query, operation, token); });
    if (!id) return fail(ErrorCode::unauthenticated, "invalid signature");
    return Route{*id, kAgentPort};
}

}  // namespace gb::ingress
