// SPDX-License-Identifier: Apache-2.0
#include "control/keys.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/log.h"

namespace gb {
namespace {

constexpr std::string_view kPrefix = "e2b_";

std::unexpected<Error> refused_key(std::string_view why) {
    return fail(ErrorCode::unauthenticated,
                fmt::format("Invalid API key, please visit https://e2b.dev/docs/api-key for more information: {} "
                            "(on the server, `glovebox env` prints a valid one)",
                            why));
}

}  // namespace

std::string mask_key(std::string_view key) {
    if (key.size() < 12) return "…";
    return fmt::format("{}…{}", key.substr(0, 8), key.substr(key.size() - 4));
}

NewKey make_api_key(std::string team_id, std::string name) {
    NewKey out;
    out.key = std::string(kPrefix) + random_hex(20);
    out.row = {random_uuid(), std::move(team_id), std::move(name), sha256_hex(out.key), mask_key(out.key), now_ms()};
    return out;
}

Result<Team> authenticate(Store& store, std::string_view key) {
    if (key.empty()) return refused_key("the header X-API-Key is missing");
    bool well_formed = key.size() == 44 && key.starts_with(kPrefix) &&
                       std::ranges::all_of(key.substr(4), [](char c) {
                           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                       });
    if (!well_formed) return refused_key("a key is e2b_ followed by 40 hexadecimal digits");
    GB_TRY_ASSIGN(auto team, store.team_of_key(sha256_hex(key)));
    if (!team) return refused_key("no such key");
    return *std::move(team);
}

std::optional<Team> authenticate_known(Store& store, std::string_view key) {
    return store.known_team_of_key(sha256_hex(key));
}

Status ensure_default_key(Store& store, const std::filesystem::path& key_file) {
    GB_TRY_ASSIGN(auto teams, store.teams());
    std::string team_id;
    for (const Team& team : teams)
        if (team.slug == "default") team_id = team.id;
    if (team_id.empty()) {
        Team team;
        team.id = team_id = random_uuid();
        team.name = "Default";
        team.slug = "default";
        team.plan = "pro";
        GB_TRY(store.add_team(team));
    }
    if (auto text = read_file(key_file); text) {
        std::string key = *text;
        while (!key.empty() && key.back() == '\n') key.pop_back();
        if (authenticate(store, key)) return {};
    }
    NewKey made = make_api_key(team_id, "default");
    GB_TRY(store.add_api_key(made.row));
    GB_TRY(write_file_atomic(key_file, made.key + "\n", 0600));
    log::info("made the default API key", {{"mask", made.row.mask}, {"file", key_file.string()}});
    return {};
}

Result<std::string> ensure_admin_token(const std::filesystem::path& file) {
    constexpr std::size_t kLength = 64;
    auto text = read_file(file);
    if (!text && text.error().code != ErrorCode::not_found) return std::unexpected(text.error());
    if (text && text->size() >= kLength) return sha256_hex(text->substr(0, kLength));
    const std::string made = random_hex(kLength / 2);
    GB_TRY(write_file_atomic(file, made + "\n", 0600));
    return sha256_hex(made);
}

}  // namespace gb
