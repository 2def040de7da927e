// SPDX-License-Identifier: Apache-2.0
#include "cli/job_script.h"

#include <charconv>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/crypto.h"

namespace gb::cli {
namespace {

namespace json = boost::json;

// The folder is the claim: only one of several starts can make it.
constexpr const char* kStart = R"sh(
work=$PWD
mkdir -m 700 -p "$HOME/.glovebox-job" && cd "$HOME/.glovebox-job" || exit 126
mkdir started 2>/dev/null || exit 0
: >>output || exit 126
setsid /bin/sh -c '
    (cd "$1" && shift && exec "$@")
    code=$?
    echo "$code $(stat -c %s output)" >exit.new && mv exit.new exit
' glovebox-job "$work" "$@" </dev/null >>output 2>&1 &
echo $! >pid.new && mv pid.new pid
)sh";

// A job that has ended may have left its number to another process, so that is only looked at while there is
// no `exit`.
constexpr const char* kFollow = R"sh(
cd "$HOME/.glovebox-job" 2>/dev/null || exit 125
tries=0
until [ -e pid ]; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || exit 125
    sleep 0.1
done
if [ -e exit ]; then
    tail -c "+$1" output
else
    tail -c "+$1" -f -s 0.2 --pid="$(cat pid)" output 2>/dev/null
fi
[ ! -e exit ] || cat exit >&2
)sh";

json::object start_message(const char* script, json::array arguments) {
    json::array args{"-c", script, "glovebox-job"};
    for (json::value& argument : arguments) args.push_back(std::move(argument));
    return {{"process", json::object{{"cmd", "/bin/sh"}, {"args", std::move(args)}}}, {"stdin", false}};
}

template <class T>
bool take_number(std::string_view& text, T& out) {
    auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (ec != std::errc()) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

const json::object* object_in(const json::object& outer, const char* name) {
    const json::value* inner = outer.if_contains(name);
    return inner != nullptr ? inner->if_object() : nullptr;
}

}  // namespace

std::string start_job_message(std::span<const std::string> command) {
    return json::serialize(start_message(kStart, json::array(command.begin(), command.end())));
}

std::string follow_job_message(std::uint64_t offset, std::string_view tag) {
    json::object message =
        start_message(kFollow, {json::value(std::to_string(offset + 1))});  // tail counts from 1
    message["tag"] = tag;
    return json::serialize(message);
}

std::string end_message(std::string_view tag) {
    return json::serialize(
        json::object{{"process", json::object{{"tag", tag}}}, {"signal", "SIGNAL_SIGKILL"}});
}

std::optional<JobEnd> parse_job_end(std::string_view text) {
    JobEnd out;
    if (!take_number(text, out.exit_code) || out.exit_code < 0 || out.exit_code > 255) return std::nullopt;
    if (!text.starts_with(' ')) return std::nullopt;
    text.remove_prefix(1);
    if (!take_number(text, out.output_bytes) || text != "\n") return std::nullopt;
    return out;
}

Result<AgentEvent> parse_agent_event(std::string_view payload) {
    boost::system::error_code ec;
    const json::value message = json::parse(payload, ec);
    const json::object* object = ec ? nullptr : message.if_object();
    const json::object* event = object != nullptr ? object_in(*object, "event") : nullptr;
    if (event == nullptr) return fail(ErrorCode::internal, "the agent sent no event");
    AgentEvent out;
    if (const json::object* data = object_in(*event, "data")) {
        for (auto [name, bytes] : {std::pair("stdout", &out.out), std::pair("stderr", &out.err)}) {
            const json::value* text = data->if_contains(name);
            if (text == nullptr) continue;
            auto decoded = text->is_string() ? base64_decode(text->get_string()) : std::nullopt;
            if (!decoded) return fail(ErrorCode::internal, "the agent sent output that is not base64");
            *bytes = *std::move(decoded);
        }
    }
    if (const json::object* end = object_in(*event, "end")) {
        const json::value* code = end->if_contains("exitCode");
        out.exit_code = 0;  // its default, which is not written
        if (code != nullptr) {
            if (!code->is_int64() || code->get_int64() < -1 || code->get_int64() > 255)
                return fail(ErrorCode::internal, "the agent sent no exit code");
            out.exit_code = static_cast<int>(code->get_int64());
        }
    }
    return out;
}

Result<Upload> parse_upload(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size())
        return fail(
            ErrorCode::invalid_argument,
            fmt::format("--upload '{}': wanted is FILE:PATH, a file here and its place in the sandbox",
                        text));
    return Upload{std::filesystem::path(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

}  // namespace gb::cli
