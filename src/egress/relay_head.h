// SPDX-License-Identifier: Apache-2.0
// What becomes of the head of a request, and of an answer, on its way through the relay. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "http/message.h"

namespace gb::egress {

struct RelayRequest {
    std::string host;        // the value of the one Host header, as the guest wrote it, not empty
    http::RequestHead head;  // for the upstream: origin-form or "*", no header that speaks of the connection
    std::optional<std::uint64_t> length;  // of the body; none: chunked
    bool websocket = false;               // asks for that upgrade, and the head still does
    bool repeatable = false;  // may be sent a second time when the connection broke (RFC 9110 9.2.2)
    bool traced = false;      // the answer would show the request's own headers
};

// A head that passed HeadCheck. `tls`: the guest came by https. `version`: 10 or 11.
// permission_denied: no host, or CONNECT; invalid_argument: a target that is none, or names another host than
// Host.
Result<RelayRequest> read_request(const http::RequestHead& head, bool tls, int version);

struct RelayAnswer {
    http::ResponseHead head;              // for the guest, without what speaks of the connection
    std::optional<std::uint64_t> length;  // of the body; none: until its end
};
RelayAnswer read_answer(http::ResponseHead head);

// The 101 that answers a websocket's request; unavailable for any other.
Result<http::ResponseHead> read_websocket_answer(http::ResponseHead head);

}  // namespace gb::egress
