// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/guest_state.h"

#include <charconv>

#include <boost/json/parse.hpp>

#include "base/file.h"
#include "base/log.h"

namespace gb::interpreter {
namespace {

namespace json = boost::json;

// Missing is ordinary; anything else is worth a line.
std::string read_or_empty(const std::filesystem::path& path) {
    auto text = read_file(path);
    if (text) return *std::move(text);
    if (text.error().code != ErrorCode::not_found)
        log::warn("cannot read", {{"path", path.string()}, {"error", text.error().message}});
    return {};
}

std::uint64_t parse_generation(std::string_view text) {
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

EnvMap parse_env(std::string_view text) {
    EnvMap env;
    if (text.empty()) return env;
    boost::system::error_code error;
    json::value value = json::parse(text, error);
    if (error || !value.is_object()) {
        log::warn("envs.json is not a JSON object", {{"error", error.message()}});
        return env;
    }
    for (const auto& [name, item] : value.get_object())
        if (item.is_string()) env[std::string(name)] = std::string(std::string_view(item.get_string()));
    return env;
}

}  // namespace

GuestState read_guest_state(const std::filesystem::path& run_dir) {
    GuestState state;
    state.generation = parse_generation(read_or_empty(run_dir / "generation"));
    state.env = parse_env(read_or_empty(run_dir / "envs.json"));
    return state;
}

std::optional<HiddenCall> guest_state_call(const std::optional<GuestState>& applied, const GuestState& now) {
    const GuestState before = applied.value_or(GuestState{});
    if (before == now) return std::nullopt;
    const Reseed reseed = before.generation == now.generation ? Reseed::no : Reseed::yes;
    return enter_generation(reseed, now.env);
}

}  // namespace gb::interpreter
