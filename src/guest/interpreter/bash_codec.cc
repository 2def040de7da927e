// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/bash_codec.h"

#include <charconv>
#include <random>

#include <boost/json/object.hpp>
#include <fmt/format.h>

#include "base/file.h"

namespace gb::interpreter {
namespace {

namespace json = boost::json;

constexpr int kInterrupted = 128 + 2;

std::string words_of(const json::object& env) {
    std::string words;
    for (const auto& [name, value] : env) {
        if (!value.is_string()) continue;
        words += ' ' + bash_quoted(fmt::format("{}={}", std::string_view(name),
                                               std::string_view(value.get_string())));
    }
    return words;
}

}  // namespace

std::string bash_quoted(std::string_view text) {
    std::string word = "'";
    for (char c : text) {
        if (c == '\0') break;  // nothing that a process can be given goes beyond it
        if (c == '\'') word += "'\\'";
        word += c;
    }
    return word + "'";
}

std::string bash_code(const HiddenCall& call) {
    const json::object* argument = call.argument.if_object();
    if (argument == nullptr) return "true";
    if (call.function == "set_call_env") return "__glovebox_lay call" + words_of(*argument);
    if (call.function != "enter_generation") return "true";
    std::string code;
    const json::value* reseed = argument->if_contains("reseed");
    if (reseed != nullptr && reseed->is_bool() && reseed->get_bool())
        code = fmt::format("RANDOM={}; ", std::random_device()());
    const json::value* env = argument->if_contains("env");
    return code + "__glovebox_lay sandbox" +
           (env != nullptr && env->is_object() ? words_of(env->get_object()) : "");
}

Result<std::string> BashCodec::encode(const PipeRequest& request) {
    const std::filesystem::path file = folder_ / ("cell-" + request.id);
    GB_TRY(write_file_atomic(file, request.call ? bash_code(*request.call) : request.code, 0600));
    pending_[request.id] = !request.call;
    const std::string start = fmt::format("__glovebox_start {} {}; ", request.id, bash_quoted(file.string()));
    if (request.call) return start + "\\builtin eval \"$__glovebox_code\"\n";
    return start + "\\builtin eval \"$__glovebox_code\" </dev/null 4>&-; __glovebox_finish \"$?\"\n";
}

Result<PipeAnswer> BashCodec::decode(std::string_view line) {
    auto word = [&line] {
        const std::size_t end = std::min(line.find(' '), line.size());
        std::string_view first = line.substr(0, end);
        line.remove_prefix(std::min(end + 1, line.size()));
        return first;
    };
    const std::string_view what = word();
    if (what == "ready") return PipeAnswer{.kind = PipeAnswer::Kind::ready, .messages = {}};
    const std::string id(word());
    auto pending = pending_.find(id);
    if (pending == pending_.end()) return fail(ErrorCode::invalid_argument, "of no request");
    if (what == "started") {
        // Not by the shell: for that it would start a program.
        std::error_code ignored;
        std::filesystem::remove(folder_ / ("cell-" + id), ignored);
        return PipeAnswer{.kind = PipeAnswer::Kind::started, .messages = {}};
    }
    int status = -1;
    const std::string_view number = word();
    std::from_chars(number.data(), number.data() + number.size(), status);
    if (what != "done" || status < 0) return fail(ErrorCode::invalid_argument, "of unknown type");
    const bool cell = pending->second;
    pending_.erase(pending);

    PipeAnswer answer{.kind = PipeAnswer::Kind::message, .messages = {}};
    if (cell && status == kInterrupted) {
        answer.messages.push_back(error_message(id, "KeyboardInterrupt", ""));
    } else if (cell && status != 0) {
        answer.messages.push_back(error_message(id, "ExitCode", std::to_string(status)));
    }
    for (Message& message : finished_messages(id, status == 0)) answer.messages.push_back(std::move(message));
    return answer;
}

}  // namespace gb::interpreter
