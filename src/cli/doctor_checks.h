// SPDX-License-Identifier: Apache-2.0
// What the doctor says about facts of a host. Pure: the facts are given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gb::cli {

enum class Finding {
    good,
    note,  // it works, with less than it could, or nobody can know
    bad,   // sandboxes will not run, or not safely
};

struct Check {
    std::string name;
    Finding finding;
    std::string text;  // what was found, and what to do about it
};

// The certificate of `tls`: readable, of this key, valid today and in 14 days, made for names below `domain`.
Check judge_certificate(std::string_view chain_pem, std::string_view key_pem, std::string_view domain,
                        std::int64_t now_ms);

// Chains of other programs that may drop what sandboxes send, from `nft -j list ruleset`. Their names: "ip
// filter FORWARD".
Result<std::vector<std::string>> dropping_forward_chains(std::string_view ruleset_json);
// Where nft did not list the rules: its exit code (128 + signal when a signal ended it) and what it said.
Check judge_unlisted_rules(int exit_code, const std::string& said);
Check judge_forwarding(const Result<std::vector<std::string>>& chains);

Check judge_conntrack(std::uint64_t most, std::uint64_t used);  // connections that the kernel follows at once
Check judge_open_files(std::uint64_t soft, std::uint64_t hard);

struct Space {
    std::string place;
    std::uint64_t free_bytes = 0;
    std::uint64_t inodes = 0, free_inodes = 0;  // 0 inodes: the file system makes them as needed
};
Check judge_space(std::string name, const Space& space, std::uint64_t needed_gib);

Check judge_clock(std::int64_t now_ms, std::int64_t built_ms, bool synchronised);

// Who answers for names of sandboxes: those of the configuration, else the host's, from /etc/resolv.conf.
Check judge_resolvers(const std::vector<std::string>& configured, std::string_view resolv_conf);

// A port that the server is to have: free, held by the server that runs already, or by somebody else.
enum class PortUse { free, ours, others, unusable };
Check judge_port(std::string name, std::string_view address, int port, PortUse use);

}  // namespace gb::cli
