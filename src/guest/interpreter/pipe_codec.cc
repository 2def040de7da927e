// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/pipe_codec.h"

#include <boost/json/array.hpp>

namespace gb::interpreter {
namespace {

namespace json = boost::json;

Message message(const std::string& request_id, std::string type, json::object content) {
    Message made;
    made.type = std::move(type);
    made.parent_id = request_id;
    made.content = std::move(content);
    return made;
}

}  // namespace

std::vector<Message> finished_messages(const std::string& request_id, bool ok, bool asked_to_exit) {
    json::object reply{{"status", ok ? "ok" : "error"}};
    if (asked_to_exit) reply["payload"] = json::array{json::object{{"source", "ask_exit"}}};
    std::vector<Message> both;
    both.push_back(message(request_id, "execute_reply", std::move(reply)));
    both.push_back(message(request_id, "status", {{"execution_state", "idle"}}));
    return both;
}

Message error_message(const std::string& request_id, std::string_view name, std::string_view value) {
    return message(request_id, "error", {{"ename", name}, {"evalue", value}, {"traceback", json::array()}});
}

}  // namespace gb::interpreter
