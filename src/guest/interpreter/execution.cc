// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/execution.h"

#include "base/clock.h"
#include "guest/interpreter/json_text.h"
#include "guest/interpreter/output_line.h"
#include "guest/interpreter/raw_json.h"

namespace gb::interpreter {
namespace {

namespace json = boost::json;

std::string joined_traceback(const json::object& content) {
    std::string all;
    const json::value* lines = content.if_contains("traceback");
    if (lines == nullptr || !lines->is_array()) return all;
    for (const json::value& line : lines->get_array()) {
        if (!line.is_string()) continue;
        if (!all.empty() && all.back() != '\n') all += '\n';
        all += std::string_view(line.get_string());
    }
    return all;
}

bool asks_to_exit(const json::object& reply) {
    const json::value* payload = reply.if_contains("payload");
    if (payload == nullptr || !payload->is_array()) return false;
    for (const json::value& item : payload->get_array())
        if (item.is_object() && text_of(item.get_object(), "source") == "ask_exit") return true;
    return false;
}

}  // namespace

std::vector<std::string> Execution::error(const json::object& content) {
    if (failed_) return {};
    failed_ = true;
    return {error_line(text_of(content, "ename"), text_of(content, "evalue"), joined_traceback(content))};
}

std::vector<std::string> Execution::feed(const Message& message) {
    if (message.parent_id != request_id_) return {};
    const json::object& content = message.content;
    if (message.type == "stream") {
        const Stream stream = text_of(content, "name") == "stderr" ? Stream::err : Stream::out;
        return {stream_line(stream, text_of(content, "text"),
                            message.date.empty() ? rfc3339(now_ms()) : message.date)};
    }
    if (message.type == "execute_result" || message.type == "display_data") {
        const auto data = raw_member(message.content_text, "data");
        if (!data) return {};
        const bool main = message.type == "execute_result";
        return {result_line(main ? ResultKind::main_result : ResultKind::displayed, *data)};
    }
    if (message.type == "error") return error(content);
    if (message.type == "execute_input") {
        const json::value* count = content.if_contains("execution_count");
        if (count == nullptr || !count->is_int64()) return {};
        return {number_of_executions_line(count->get_int64())};
    }
    if (message.type == "status") {
        if (text_of(content, "execution_state") == "idle") idle_ = true;
        return {};
    }
    if (message.type == "execute_reply") {
        replied_ = true;
        asked_to_exit_ = asks_to_exit(content);
        const std::string_view status = text_of(content, "status");
        if (status == "error") return error(content);
        if ((status == "aborted" || status == "abort") && !failed_) {
            failed_ = true;
            return {error_line("ExecutionAborted", "Execution was aborted", "")};
        }
    }
    return {};
}

}  // namespace gb::interpreter
