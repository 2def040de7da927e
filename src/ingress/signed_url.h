// SPDX-License-Identifier: Apache-2.0
// Signed file URLs (contract 1.7, 3.6) name no sandbox where sandboxes have no host names of their own: the one whose
// token made the signature is meant.
#pragma once

#include "base/file_signature.h"
#include "control/sandboxes.h"
#include "http/server.h"
#include "ingress/route.h"

namespace gb::ingress {

// The parts of a request that may be signed, as they are signed. Refers to the request's target.
struct SignedRequest {
    std::string path, username;
    const std::string* signature = nullptr;  // never null
    const std::string* expiration = nullptr;
    FileOperation operation = FileOperation::read;

    [[nodiscard]] SignedQuery query() const {
        return {.path = path, .username = username, .signature = signature, .expiration = expiration};
    }
};
// Nothing when it is none for files, or has no signature.
std::optional<SignedRequest> signed_request(const http::Exchange& exchange);

// Nothing for any other request; unauthenticated when no running sandbox made the signature. Whether it has expired is
// for the sandbox to say. Only for requests that find_route() leaves to the control plane.
Result<std::optional<Route>> find_signed_route(const http::Exchange& exchange, const Sandboxes& sandboxes);

}  // namespace gb::ingress
