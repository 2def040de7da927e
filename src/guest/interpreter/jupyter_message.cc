// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/jupyter_message.h"

#include <algorithm>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include "base/crypto.h"
#include "base/ids.h"
#include "guest/interpreter/json_text.h"

namespace gb::interpreter {
namespace {

namespace json = boost::json;

constexpr std::string_view kDelimiter = "<IDS|MSG>";
// Behind the delimiter: signature, header, parent header, metadata, content.
constexpr std::size_t kSignedFrames = 4;

std::string sign(std::span<const std::string_view> frames, std::string_view key) {
    std::string all;
    for (std::string_view frame : frames) all.append(frame);
    return to_hex(hmac_sha256(key, all));
}

Result<json::object> parse_object(std::string_view text, std::string_view what) {
    json::parse_options options;
    options.max_depth = 512;  // results may be deeply nested
    options.allow_invalid_utf8 =
        true;  // Python prints undecodable bytes as they were; scrubbed when written out
    boost::system::error_code error;
    json::value value = json::parse(text, error, {}, options);
    if (error)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("{} of a kernel message: {}", what, error.message()));
    if (!value.is_object())
        return fail(ErrorCode::invalid_argument,
                    fmt::format("{} of a kernel message is not an object", what));
    return std::move(value.get_object());
}

}  // namespace

std::vector<std::string> build_message(const Request& request, std::string_view key) {
    json::object header;
    header["msg_id"] = request.id;
    header["session"] = request.session;
    header["username"] = "glovebox";
    header["date"] = request.date;
    header["msg_type"] = request.type;
    header["version"] = "5.3";
    const std::string parts[kSignedFrames] = {json::serialize(header), "{}", "{}",
                                              json::serialize(request.content)};
    const std::string_view views[kSignedFrames] = {parts[0], parts[1], parts[2], parts[3]};
    std::vector<std::string> frames = {std::string(kDelimiter), sign(views, key)};
    frames.insert(frames.end(), std::begin(parts), std::end(parts));
    return frames;
}

Result<Message> parse_message(std::span<const std::string_view> frames, std::string_view key) {
    auto delimiter = std::ranges::find(frames, kDelimiter);
    const auto start = static_cast<std::size_t>(delimiter - frames.begin());
    if (delimiter == frames.end() || frames.size() - start < 2 + kSignedFrames)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("not a kernel message: {} frames", frames.size()));
    const std::string_view signature = frames[start + 1];
    const auto parts = frames.subspan(start + 2, kSignedFrames);
    if (!constant_time_equal(signature, sign(parts, key)))
        return fail(ErrorCode::permission_denied, "kernel message with a wrong signature");

    GB_TRY_ASSIGN(json::object header, parse_object(parts[0], "header"));
    GB_TRY_ASSIGN(json::object parent, parse_object(parts[1], "parent header"));
    GB_TRY_ASSIGN(json::object content, parse_object(parts[3], "content"));
    Message message;
    message.type = text_of(header, "msg_type");
    message.id = text_of(header, "msg_id");
    message.date = text_of(header, "date");
    message.parent_id = text_of(parent, "msg_id");
    message.content = std::move(content);
    if (message.content.contains("data")) message.content_text = parts[3];
    if (message.type.empty()) return fail(ErrorCode::invalid_argument, "kernel message without a msg_type");
    return message;
}

json::object execute_content(std::string_view code, Visibility visibility) {
    const bool silent = visibility == Visibility::silent;
    json::object content;
    content["code"] = code;
    content["silent"] = silent;
    content["store_history"] = visibility == Visibility::recorded;
    content["user_expressions"] = json::object();
    content["allow_stdin"] = false;
    // One request at a time is in flight, so there is never anything to stop. With `true` a kernel that has
    // just reported an error refuses, for a moment, the request that follows it.
    content["stop_on_error"] = false;
    return content;
}

}  // namespace gb::interpreter
