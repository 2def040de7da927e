// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/output_line.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "guest/interpreter/raw_json.h"
#include "guest/interpreter/utf8.h"

namespace gb::interpreter {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kFields = {{
    {"text/html", "html"},
    {"text/markdown", "markdown"},
    {"image/svg+xml", "svg"},
    {"image/png", "png"},
    {"image/jpeg", "jpeg"},
    {"application/pdf", "pdf"},
    {"text/latex", "latex"},
    {"application/json", "json"},
    {"application/javascript", "javascript"},
    {"e2b/data", "data"},
    {"e2b/chart", "chart"},
}};

std::string_view field_of(std::string_view mime) {
    for (const auto& [type, field] : kFields)
        if (type == mime) return field;
    return {};
}

std::string text_line(std::string_view type,
                      std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
    std::string line = fmt::format(R"({{"type":"{}")", type);
    for (const auto& [name, value] : fields) line += fmt::format(R"(,"{}":{})", name, log::json_quote(value));
    return line + "}\n";
}

}  // namespace

std::string_view without_quotes(std::string_view repr) {
    if (repr.size() < 2 || repr.front() != repr.back()) return repr;
    if (repr.front() != '\'' && repr.front() != '"') return repr;
    return repr.substr(1, repr.size() - 2);
}

std::string number_of_executions_line(std::int64_t count) {
    return fmt::format("{{\"type\":\"number_of_executions\",\"execution_count\":{}}}\n", count);
}

std::string stream_line(Stream stream, std::string_view text, std::string_view timestamp) {
    return text_line(stream == Stream::out ? "stdout" : "stderr", {{"text", text}, {"timestamp", timestamp}});
}

std::string error_line(std::string_view name, std::string_view value, std::string_view traceback) {
    return text_line("error", {{"name", name}, {"value", value}, {"traceback", traceback}});
}

std::string keepalive_line() {
    return "{\"type\":\"keepalive\"}\n";
}

std::string end_of_execution_line() {
    return "{\"type\":\"end_of_execution\"}\n";
}

std::string result_line(ResultKind kind, std::string_view bundle) {
    std::string line = R"({"type":"result")";
    std::string extra;
    for (const RawMember& member : raw_members(bundle)) {
        if (member.value == "null") continue;
        if (member.key == "text/plain") {
            if (auto text = decoded_string(member.value))
                line += R"(,"text":)" + log::json_quote(without_quotes(*text));
        } else if (std::string_view field = field_of(member.key); !field.empty()) {
            line += fmt::format(R"(,"{}":)", field) + on_one_line(member.value);
        } else {
            if (!extra.empty()) extra += ',';
            extra += log::json_quote(member.key) + ':' + on_one_line(member.value);
        }
    }
    line += fmt::format(R"(,"extra":{{{}}},"is_main_result":{}}})", extra, kind == ResultKind::main_result);
    return scrub_utf8(std::move(line)) + "\n";
}

}  // namespace gb::interpreter
