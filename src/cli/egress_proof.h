// SPDX-License-Identifier: Apache-2.0
// What attempts from inside, the same from the host and the decision log say together. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>

#include "cli/egress_targets.h"

namespace gb::cli {

enum class Proof {
    as_allowed,   // it may pass, and does
    proved,       // it may not, it does not, and the log or an answer to the host says that this is why
    unproved,     // it may not and does not, but nobody answers the host either, and the log has no line
    unreachable,  // it may pass, but nobody answers the host either
    blocked,      // it may pass, the host is answered, and the sandbox is not
    breach,       // it may not pass, and does
};
std::string_view to_string(Proof proof);
inline bool is_fault(Proof proof) {
    return proof == Proof::blocked || proof == Proof::breach;
}

struct ProofRow {
    Target target;
    probe::Outcome seen, control;
    std::string log;  // "deny private"; empty: no line
    Proof proof = Proof::unproved;
};

// The line of the log that speaks of the target: its verdict and rule.
std::string log_line_of(const Target& target, const boost::json::array& lines);
ProofRow prove(Target target, probe::Outcome seen, probe::Outcome control, const boost::json::array& lines);

boost::json::array proof_json(std::span<const ProofRow> rows);
std::string proof_table(std::span<const ProofRow> rows);
// "41 proved, 12 as allowed, 3 unproved", each kind that there is.
std::string proof_summary(std::span<const ProofRow> rows);

}  // namespace gb::cli
