// SPDX-License-Identifier: Apache-2.0
// The Jupyter wire format (jupyter-client documentation, "Messaging in Jupyter", protocol 5.3): a list of
// frames, signed with HMAC-SHA256. Pure: nothing here touches a socket.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "base/result.h"

namespace gb::interpreter {

// What a kernel says. Identities, metadata and buffers are checked and dropped: nobody here needs them.
struct Message {
    std::string type;       // header.msg_type, e.g. "stream"
    std::string id;         // header.msg_id
    std::string date;       // header.date as the kernel wrote it; may be empty
    std::string parent_id;  // msg_id of the request this belongs to; empty when it belongs to none
    boost::json::object content;
    std::size_t size = 0;      // bytes of the frames it came in
    std::string content_text;  // as it was written; kept for messages that carry results
};

// What we ask of it.
struct Request {
    std::string id;
    std::string session;
    std::string type;  // e.g. "execute_request"
    std::string date;
    boost::json::object content;
};

std::vector<std::string> build_message(const Request& request, std::string_view key);

// invalid_argument when the frames are not a message, permission_denied when the signature is wrong.
Result<Message> parse_message(std::span<const std::string_view> frames, std::string_view key);

// An unrecorded request leaves no history and no execution count, a silent one no results either.
enum class Visibility { recorded, unrecorded, silent };
boost::json::object execute_content(std::string_view code, Visibility visibility);

}  // namespace gb::interpreter
