// SPDX-License-Identifier: Apache-2.0
// Secrets of teams: what header rules put into requests of sandboxes (contract 7.6). A value goes in and
// comes out for the node alone: no answer, log, event or error has it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/seal.h"
#include "store/store.h"

namespace gb {

inline constexpr std::size_t kMostSecrets = 1000;  // of one team
inline constexpr std::size_t kLongestSecretName = 128;
inline constexpr std::size_t kLongestSecretValue = 16 * 1024;  // bytes

using Metadata = std::map<std::string, std::string>;

// The name as it is stored: names are not case-sensitive. invalid_argument unless it is 1 to 128 of letters,
// digits, '_' and '-', and not one of ids ("sec_…").
Result<std::string> canonical_secret_name(std::string_view name);
// It must be fit for the value of a header (RFC 9110 5.5): no line ends, no control characters.
Status check_secret_value(std::string_view value);
Status check_secret_metadata(const Metadata& metadata);

// Calls block; any thread may make them.
class Secrets {
  public:
    Secrets(Store& store, const Sealer& sealer) : store_(store), sealer_(sealer) {}

    // already_exists: the name is taken; failed_precondition: there is no usable key.
    Result<SecretRecord> create(const std::string& team_id, std::string_view name, std::string_view value,
                                Metadata metadata);
    // A new version, in force from the next request of any sandbox on. Without `metadata` what is there
    // stays.
    Result<SecretRecord> update(const std::string& team_id, std::string_view id_or_name,
                                std::string_view value, std::optional<Metadata> metadata);
    Result<SecretRecord> get(const std::string& team_id, std::string_view id_or_name);
    Result<std::vector<SecretRecord>> list(const SecretQuery& query) { return store_.secrets(query); }
    Status remove(const std::string& team_id, std::string_view id_or_name);
    // invalid_argument that names the first one that the team does not have.
    Status check_known(const std::string& team_id, const std::vector<std::string>& names);

    // For SecretSource. not_found: the sandbox's team has no secret of that name.
    Result<std::string> value_for(const std::string& sandbox_id, const std::string& name);

  private:
    Store& store_;
    const Sealer& sealer_;
};

}  // namespace gb
