// SPDX-License-Identifier: Apache-2.0
#include "control/secrets.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/ids.h"

namespace gb {
namespace {

constexpr std::string_view kIdPrefix = "sec_";
constexpr std::size_t kMostMetadata = 32, kLongestKey = 128, kLongestEntry = 1024, kMostMetadataBytes = 8192;

std::unexpected<Error> invalid(std::string message) {
    return fail(ErrorCode::invalid_argument, "validation error: " + std::move(message));
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

std::string owner_of(const SecretRecord& r) {
    return fmt::format("secret {} {} {}", r.team_id, r.id, r.version);
}

std::unexpected<Error> no_such_secret(std::string_view id_or_name) {
    return fail(ErrorCode::not_found,
                fmt::format("Secret '{}' not found", id_or_name.substr(0, kLongestSecretName)));
}

}  // namespace

Result<std::string> canonical_secret_name(std::string_view name) {
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
               c == '-';
    };
    if (name.empty() || name.size() > kLongestSecretName || !std::ranges::all_of(name, allowed))
        return invalid(
            fmt::format("field 'name' must be 1 to {} of letters, digits, '_' and '-'", kLongestSecretName));
    std::string out = lower(name);
    if (out.starts_with(kIdPrefix))
        return invalid("field 'name': names that begin with 'sec_' are ids of secrets");
    return out;
}

Status check_secret_value(std::string_view value) {
    if (value.empty()) return invalid("field 'value' is required");
    if (value.size() > kLongestSecretValue)
        return invalid(fmt::format("field 'value' has at most {} bytes", kLongestSecretValue));
    const auto forbidden = [](char c) {
        return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
    };
    if (std::ranges::any_of(value, forbidden))
        return invalid(
            "field 'value' has a line end or another control character, which cannot stand in a header; is "
            "there a "
            "newline at its end?");
    return {};
}

Status check_secret_metadata(const Metadata& metadata) {
    if (metadata.size() > kMostMetadata)
        return invalid(fmt::format("field 'metadata' has at most {} entries", kMostMetadata));
    std::size_t bytes = 0;
    for (const auto& [key, value] : metadata) {
        if (key.size() > kLongestKey || value.size() > kLongestEntry)
            return invalid(fmt::format("field 'metadata': keys have at most {} bytes, values at most {}",
                                       kLongestKey, kLongestEntry));
        bytes += key.size() + value.size();
    }
    if (bytes > kMostMetadataBytes)
        return invalid(fmt::format("field 'metadata' has at most {} bytes in all", kMostMetadataBytes));
    return {};
}

Result<SecretRecord> Secrets::create(const std::string& team_id, std::string_view name,
                                     std::string_view value, Metadata metadata) {
    SecretRecord out;
    GB_TRY_ASSIGN(out.name, canonical_secret_name(name));
    GB_TRY(check_secret_value(value));
    GB_TRY(check_secret_metadata(metadata));
    GB_TRY_ASSIGN(const std::size_t count, store_.count_secrets(team_id));
    if (count >= kMostSecrets)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("a team has at most {} secrets: delete one first", kMostSecrets));
    out.id = std::string(kIdPrefix) + random_uuid();
    out.team_id = team_id;
    out.metadata = std::move(metadata);
    out.created_ms = out.updated_ms = now_ms();
    GB_TRY_ASSIGN(out.sealed, sealer_.seal(value, owner_of(out)));
    Status added = store_.add_secret(out);
    if (!added && added.error().code == ErrorCode::already_exists)
        return fail(ErrorCode::already_exists, fmt::format("Secret '{}' exists already", out.name));
    if (!added) return std::unexpected(added.error());
    return out;
}

Result<SecretRecord> Secrets::update(const std::string& team_id, std::string_view id_or_name,
                                     std::string_view value, std::optional<Metadata> metadata) {
    GB_TRY(check_secret_value(value));
    if (metadata) GB_TRY(check_secret_metadata(*metadata));
    for (int tries = 0; tries < 16; ++tries) {
        GB_TRY_ASSIGN(SecretRecord next, get(team_id, id_or_name));
        ++next.version;
        if (metadata) next.metadata = *metadata;
        next.updated_ms = std::max(now_ms(), next.created_ms);
        GB_TRY_ASSIGN(next.sealed, sealer_.seal(value, owner_of(next)));
        Status done = store_.update_secret(next);
        if (done) return next;
        if (done.error().code != ErrorCode::aborted) return std::unexpected(done.error());
    }
    return fail(ErrorCode::aborted, "the secret is being changed by others; try again");
}

Result<SecretRecord> Secrets::get(const std::string& team_id, std::string_view id_or_name) {
    GB_TRY_ASSIGN(auto found, store_.secret(team_id, lower(id_or_name)));
    if (!found) return no_such_secret(id_or_name);
    return *std::move(found);
}

Status Secrets::remove(const std::string& team_id, std::string_view id_or_name) {
    GB_TRY_ASSIGN(const SecretRecord found, get(team_id, id_or_name));
    return store_.remove_secret(team_id, found.id);
}

Status Secrets::check_known(const std::string& team_id, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
        auto canonical = canonical_secret_name(name);
        std::optional<SecretRecord> found;
        if (canonical) {
            GB_TRY_ASSIGN(found, store_.secret(team_id, *canonical));
        }
        if (!found || found->name != *canonical)
            return fail(ErrorCode::invalid_argument,
                        fmt::format("network rules name the secret '{}', which does not exist", name));
    }
    return {};
}

Result<std::string> Secrets::value_for(const std::string& sandbox_id, const std::string& name) {
    GB_TRY_ASSIGN(auto found, store_.secret_for(sandbox_id, lower(name)));
    if (!found) return no_such_secret(name);
    auto value = sealer_.unseal(found->sealed, owner_of(*found));
    if (!value) return std::unexpected(value.error().with(fmt::format("secret '{}'", found->name)));
    return value;
}

}  // namespace gb
