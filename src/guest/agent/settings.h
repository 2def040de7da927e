// SPDX-License-Identifier: Apache-2.0
// What the agent has been told: by its command line once, by POST /init again and again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "guest/agent/paths.h"
#include "guest/agent/users.h"

namespace gb::agent {

using Environment = std::map<std::string, std::string>;

struct Settings {
    std::string access_token;     // empty: every request is allowed (a template being built)
    std::string default_user;     // who makes requests that name nobody
    std::string default_workdir;  // empty: the user's home
    Environment env;              // global: under what a request sets, over the user's HOME and the like
    std::string sandbox_id, template_id;  // also in `env`, as E2B_SANDBOX_ID and E2B_TEMPLATE_ID
    std::uint64_t generation = 0;         // how many times /init was accepted
    // Where programs without a slash are looked up when no environment says otherwise.
    std::string search_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    bool trusts_authority = false;  // kTrustBundle holds the authority of this sandbox's header rules
};

// For programs that bring certificates of their own, or none: each reads one of the variables.
inline constexpr const char* kTrustBundle = "/etc/ssl/certs/ca-certificates.crt";
inline constexpr const char* kTrustVariables[] = {"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE",
                                                  "REQUESTS_CA_BUNDLE",  "CURL_CA_BUNDLE",
                                                  "GIT_SSL_CAINFO",      "AWS_CA_BUNDLE"};

// The global variables as programs get them: with those of the trust store, where it needs them and the
// sandbox's own say nothing else.
inline Environment global_environment(const Settings& settings) {
    Environment env = settings.env;
    if (settings.trusts_authority)
        for (const char* name : kTrustVariables) env.try_emplace(name, kTrustBundle);
    return env;
}

// What an absent path or working directory means, and where a relative working directory starts. The working
// directory of the template is the default user's; for anybody else it is their home, so that root's "x" does
// not land in a user's folder.
inline const std::string& base_folder(const Settings& settings, const User& user) {
    const bool is_default = user.name == settings.default_user;
    return is_default && !settings.default_workdir.empty() ? settings.default_workdir : user.home;
}

// A path of the files API: "" is the base folder, but relative paths start at the home of whoever asks.
inline Result<std::string> resolve_file_path(std::string_view path, const Settings& settings,
                                             const User& user) {
    return resolve_path(path, user.home, path.empty() ? base_folder(settings, user) : user.home);
}

// How processes are set apart from the agent. Only PID 1 does it.
struct ProcessLimits {
    std::optional<int> oom_score_adj;
    bool reset_nice = false;
    int user_cgroup_fd = -1;  // folders of cgroup v2, -1 without
    int pty_cgroup_fd = -1;
};

}  // namespace gb::agent
