// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/qmp_message.h"

#include <algorithm>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

namespace gb::engine {
namespace json = boost::json;
namespace {

constexpr std::size_t kMaxErrorText = 500;

std::unexpected<Error> not_qmp(std::string_view why) {
    return fail(ErrorCode::data_loss, fmt::format("QEMU's monitor: {}", why));
}

std::string text_of(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

Result<std::uint64_t> reply_id(const json::object& object) {
    const json::value* id = object.if_contains("id");
    // QEMU answers a line that it could not parse without an id: none of ours.
    if (id == nullptr || !(id->is_int64() || id->is_uint64()))
        return not_qmp("an answer to nothing that was asked");
    if (id->is_uint64()) return id->get_uint64();
    if (id->get_int64() < 0) return not_qmp("a negative id");
    return static_cast<std::uint64_t>(id->get_int64());
}

}  // namespace

Result<QmpMessage> parse_qmp_line(std::string_view line) {
    json::parse_options options;
    options.max_depth = 16;
    json::error_code ec;
    json::value value = json::parse(line, ec, {}, options);
    if (ec || !value.is_object()) return not_qmp("not a JSON object");
    json::object& object = value.get_object();

    if (object.contains("QMP")) return QmpGreeting{};
    if (json::value* event = object.if_contains("event")) {
        if (!event->is_string()) return not_qmp("an event without a name");
        QmpEvent out{std::string(event->get_string()), {}};
        if (json::value* data = object.if_contains("data"); data != nullptr && data->is_object())
            out.data = std::move(data->get_object());
        return out;
    }
    if (json::value* error = object.if_contains("error")) {
        GB_TRY_ASSIGN(std::uint64_t id, reply_id(object));
        std::string text = error->is_object() ? text_of(error->get_object(), "desc") : std::string();
        text.resize(std::min(text.size(), kMaxErrorText));
        return QmpReply{id, {}, text.empty() ? "no description" : text};
    }
    if (json::value* result = object.if_contains("return")) {
        GB_TRY_ASSIGN(std::uint64_t id, reply_id(object));
        return QmpReply{id, std::move(*result), std::nullopt};
    }
    return not_qmp("neither greeting, event nor answer");
}

Status QmpLines::feed(std::string_view bytes) {
    if (start_ > 0) {
        buffer_.erase(0, start_);
        searched_ -= start_;
        start_ = 0;
    }
    if (!broken_) buffer_.append(bytes);
    if (buffer_.size() > kQmpMaxLine && buffer_.find('\n') >= kQmpMaxLine) broken_ = true;
    if (!broken_) return {};
    buffer_.clear();
    searched_ = 0;
    return fail(ErrorCode::too_large, "QEMU's monitor: a line without end");
}

std::optional<std::string> QmpLines::next() {
    for (;;) {
        std::size_t end = buffer_.find('\n', std::max(start_, searched_));
        if (end == std::string::npos) {
            searched_ = buffer_.size();
            return std::nullopt;
        }
        std::string line = buffer_.substr(start_, end - start_);
        start_ = searched_ = end + 1;
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (!line.empty()) return line;
    }
}

std::string qmp_request(std::string_view command, const json::object& arguments, std::uint64_t id) {
    json::object request;
    request["execute"] = command;
    if (!arguments.empty()) request["arguments"] = arguments;
    request["id"] = id;
    return json::serialize(request) + "\n";
}

}  // namespace gb::engine
