// SPDX-License-Identifier: Apache-2.0
// POST /init: the control plane tells a sandbox who it is, at its start and after every resume.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "guest/agent/settings.h"
#include "guest/agent/trust_bundle.h"

namespace gb::agent {

struct InitRequest {
    std::optional<Environment> env;
    std::optional<std::string> access_token;  // "" takes it away
    std::optional<std::string> default_user;
    std::optional<std::string> default_workdir;
    std::optional<std::string> hostname;
    std::optional<std::string> sandbox_id;
    std::optional<std::string> template_id;
    std::optional<std::int64_t> timestamp_ms;
    std::optional<std::string> entropy;  // bytes
    std::optional<Authority> authority;  // without a certificate: none is trusted any more
};

// Absent and null fields leave things as they are, unknown ones are ignored. invalid_argument names the
// field.
Result<InitRequest> parse_init_request(std::string_view body);

// POST /trust: the authority of a sandbox that runs. As caBundle and caHash of /init, but caBundle must be there.
Result<Authority> parse_trust_request(std::string_view body);

// The environment is replaced, not merged: a variable that was taken away must not come back after a resume.
// E2B_SANDBOX and the ids are part of it always.
void apply_init_request(const InitRequest& request, Settings& settings);

// What other programs of the guest (the code interpreter) read: <dir>/generation, a decimal number, and
// <dir>/envs.json, for root only. The environment is in place before the number changes.
Status write_state_files(const std::string& dir, const Settings& settings);
// The environment alone: who reads it is told nothing of a new identity.
Status write_environment_file(const std::string& dir, const Settings& settings);

std::string environment_json(const Environment& env);

}  // namespace gb::agent
