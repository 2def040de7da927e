// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/json_codec.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "guest/interpreter/json_text.h"
#include "guest/interpreter/raw_json.h"

namespace gb::interpreter {

namespace json = boost::json;

Result<std::string> JsonCodec::encode(const PipeRequest& request) {
    json::object object{{"id", request.id}};
    if (request.call) {
        object["type"] = request.call->function;
        object["argument"] = request.call->argument;
    } else {
        object["type"] = "execute";
        object["code"] = request.code;
        object["count"] = request.count;
        object["language"] = request.language;
    }
    return json::serialize(object) + "\n";
}

Result<PipeAnswer> JsonCodec::decode(std::string_view line) {
    boost::system::error_code error;
    json::value value = json::parse(line, error);
    if (error || !value.is_object()) return fail(ErrorCode::invalid_argument, "not a JSON object");
    json::object& object = value.get_object();
    const std::string type(text_of(object, "type"));
    if (type == "ready") return PipeAnswer{.kind = PipeAnswer::Kind::ready, .messages = {}};

    PipeAnswer answer{.kind = PipeAnswer::Kind::message, .messages = {}};
    const std::string id(text_of(object, "id"));
    json::value* content = object.if_contains("content");
    if (id.empty() || content == nullptr || !content->is_object())
        return fail(ErrorCode::invalid_argument, "without id or content");
    if (type == "reply") {
        const json::value* exit = content->get_object().if_contains("exit");
        const bool exits = exit != nullptr && exit->is_bool() && exit->get_bool();
        answer.messages = finished_messages(id, text_of(content->get_object(), "status") == "ok", exits);
        return answer;
    }
    if (type != "display_data" && type != "execute_result" && type != "error")
        return fail(ErrorCode::invalid_argument, "of unknown type");
    Message message;
    message.type = type;
    message.parent_id = id;
    // Results are passed on as they were written; see raw_json.h.
    if (auto raw = raw_member(line, "content"); raw && type != "error") message.content_text = *raw;
    message.content = std::move(content->get_object());
    answer.messages.push_back(std::move(message));
    return answer;
}

}  // namespace gb::interpreter
