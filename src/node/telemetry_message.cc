// SPDX-License-Identifier: Apache-2.0
#include "node/telemetry_message.h"

#include <algorithm>
#include <array>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace gb {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxEntries = 5000;
constexpr std::size_t kMaxFields = 16;
constexpr std::size_t kMaxName = 32;
constexpr std::size_t kMaxText = 4096;  // bytes of a message or a field; the agent cuts earlier
constexpr std::uint64_t kMaxNumber = std::uint64_t{1} << 53;
constexpr std::uint64_t kMaxTimeMs = 253'402'300'799'999;  // the end of the year 9999

std::unexpected<Error> wrong(std::string_view what) {
    return fail(ErrorCode::internal, fmt::format("the guest's telemetry is wrong: {}", what));
}

Result<std::uint64_t> number(const json::object& object, std::string_view name, std::uint64_t most) {
    const json::value* value = object.if_contains(name);
    std::uint64_t out = 0;
    if (value != nullptr && value->is_int64() && value->get_int64() >= 0)
        out = static_cast<std::uint64_t>(value->get_int64());
    else if (value != nullptr && value->is_uint64())
        out = value->get_uint64();
    else
        return wrong(name);
    if (out > most) return wrong(name);
    return out;
}

Result<std::int64_t> amount(const json::object& object, std::string_view name) {
    GB_TRY_ASSIGN(const std::uint64_t value, number(object, name, kMaxNumber));
    return static_cast<std::int64_t>(value);
}

bool is_text(const json::value* value) {
    return value != nullptr && value->is_string() && value->get_string().size() <= kMaxText &&
           value->get_string().find('\0') == json::string::npos;
}

bool is_name(std::string_view text) {
    return !text.empty() && text.size() <= kMaxName &&
           std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

Result<GuestMetrics> parse_metrics(const json::object& answer) {
    const json::value* value = answer.if_contains("metrics");
    if (value == nullptr || !value->is_object()) return wrong("metrics");
    const json::object& object = value->get_object();
    GuestMetrics out;
    GB_TRY_ASSIGN(out.cpu_busy_ticks, number(answer, "cpu_busy_ticks", kMaxNumber));
    GB_TRY_ASSIGN(out.cpu_total_ticks, number(answer, "cpu_total_ticks", kMaxNumber));
    GB_TRY_ASSIGN(out.mem_used, amount(object, "mem_used"));
    GB_TRY_ASSIGN(out.mem_total, amount(object, "mem_total"));
    GB_TRY_ASSIGN(out.mem_cache, amount(object, "mem_cache"));
    GB_TRY_ASSIGN(out.disk_used, amount(object, "disk_used"));
    GB_TRY_ASSIGN(out.disk_total, amount(object, "disk_total"));
    return out;
}

Result<GuestLogEntry> parse_entry(const json::value& value) {
    constexpr std::array<std::string_view, 4> kLevels{"debug", "info", "warn", "error"};
    if (!value.is_object()) return wrong("entries");
    const json::object& object = value.get_object();
    GuestLogEntry out;
    GB_TRY_ASSIGN(out.sequence, number(object, "sequence", kMaxNumber));
    GB_TRY_ASSIGN(const std::uint64_t time, number(object, "time", kMaxTimeMs));
    out.time_ms = static_cast<std::int64_t>(time);
    const json::value* level = object.if_contains("level");
    if (!is_text(level) || std::ranges::find(kLevels, std::string_view(level->get_string())) == kLevels.end())
        return wrong("level");
    out.level = level->get_string();
    const json::value* message = object.if_contains("message");
    if (!is_text(message)) return wrong("message");
    out.message = message->get_string();
    const json::value* fields = object.if_contains("fields");
    if (fields == nullptr || !fields->is_object() || fields->get_object().size() > kMaxFields)
        return wrong("fields");
    for (const auto& field : fields->get_object()) {
        if (!is_name(field.key()) || !is_text(&field.value())) return wrong("fields");
        out.fields.emplace(field.key(), field.value().get_string());
    }
    // What control says about a sandbox bears this name; a guest must not be able to say it.
    const auto logger = out.fields.find("logger");
    if (logger == out.fields.end() || !is_name(logger->second) || logger->second == "sandbox")
        return wrong("logger");
    return out;
}

}  // namespace

Result<Telemetry> parse_telemetry(std::string_view body, std::uint64_t after) {
    if (body.size() > kMaxTelemetryBytes) return wrong("too large");
    json::parse_options options;
    options.max_depth = 4;
    boost::system::error_code ec;
    const json::value value = json::parse(body, ec, {}, options);  // refuses what is not UTF-8
    if (ec || !value.is_object()) return wrong("not a JSON object");
    const json::object& answer = value.get_object();
    Telemetry out;
    GB_TRY_ASSIGN(out.metrics, parse_metrics(answer));
    GB_TRY_ASSIGN(out.next, number(answer, "next", kMaxNumber));
    GB_TRY_ASSIGN(out.dropped, number(answer, "dropped", kMaxNumber));
    const json::value* more = answer.if_contains("more");
    if (more == nullptr || !more->is_bool()) return wrong("more");
    out.more = more->get_bool();
    const json::value* entries = answer.if_contains("entries");
    if (entries == nullptr || !entries->is_array() || entries->get_array().size() > kMaxEntries)
        return wrong("entries");
    std::uint64_t last = after;
    for (const json::value& item : entries->get_array()) {
        GB_TRY_ASSIGN(GuestLogEntry entry, parse_entry(item));
        if (entry.sequence <= last) return wrong("sequence");
        last = entry.sequence;
        out.entries.push_back(std::move(entry));
    }
    if (out.next != last) return wrong("next");
    if (out.more && out.entries.empty()) return wrong("more");  // asking again would not end
    return out;
}

}  // namespace gb
