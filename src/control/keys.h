// SPDX-License-Identifier: Apache-2.0
// API keys: made once, stored as hashes, checked on every request against the store so that a revoked key is refused
// at once.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/store.h"

namespace gb {

struct NewKey {
    ApiKey row;
    std::string key;  // "e2b_" + 40 hex digits; shown once, kept by nobody
};
NewKey make_api_key(std::string team_id, std::string name);

// What a listing may show of a key.
std::string mask_key(std::string_view key);

// The team of a key. unauthenticated with the contract's text when it is missing, malformed or unknown.
Result<Team> authenticate(Store& store, std::string_view key);
// The same for a key that was seen since keys were last changed, without waiting for the store.
std::optional<Team> authenticate_known(Store& store, std::string_view key);

// At first start: makes the team "default" and one key, whose text goes to `key_file` (0600) for the machine's
// administrator. Later starts leave both alone; a lost key file is replaced by a new key.
Status ensure_default_key(Store& store, const std::filesystem::path& key_file);

// The operator's token, in `file` (0600), made at the first start. Returns its SHA-256 in hex.
Result<std::string> ensure_admin_token(const std::filesystem::path& file);

}  // namespace gb
