// SPDX-License-Identifier: Apache-2.0
#include "cli/egress_proof.h"

#include <algorithm>
#include <array>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "cli/table.h"

namespace gb::cli {
namespace {

namespace json = boost::json;
using probe::State;

constexpr std::array<std::string_view, 6> kProofs{"as allowed",  "proved",  "unproved",
                                                  "unreachable", "BLOCKED", "BREACH"};
constexpr std::array kProofColumns{
    Column{"RESULT", "result"}, Column{"WHAT", "what"}, Column{"DESTINATION", "destination"},
    Column{"POLICY", "policy"}, Column{"SEEN", "seen"}, Column{"FROM THE HOST", "control"},
    Column{"LOG", "log"}};

bool speaks_of(const json::value& line, const Target& target, bool with_name) {
    if (field_text(line, "verdict") == "end" || field_text(line, "protocol") != target.log_protocol)
        return false;
    const std::string name = field_text(line, "name"),
                      wanted = target.log_name.empty() ? "-" : target.log_name;
    if (name != (with_name ? wanted : "-")) return false;
    if (target.log_address.empty() && name == "-") return false;
    if (!target.log_address.empty() && field_text(line, "address") != target.log_address) return false;
    return target.log_port == 0 || field_text(line, "port") == std::to_string(target.log_port);
}

Proof judge_row(const ProofRow& row) {
    const bool log_allows = row.log.starts_with("allow"), log_denies = row.log.starts_with("deny");
    const bool is_question = row.target.log_protocol == "dns";
    if (!row.target.allowed) {
        if (row.seen.state == State::open || log_allows) return Proof::breach;
        return log_denies || (row.control.state == State::open && row.seen.state == State::closed)
                   ? Proof::proved
                   : Proof::unproved;
    }
    if (row.seen.state == State::open) return Proof::as_allowed;
    if (row.seen.state == State::sent && log_allows) return Proof::as_allowed;
    if (row.seen.state == State::not_tried) return Proof::unproved;
    // A question that was allowed may still have an answer that is not.
    if (log_denies && !is_question) return Proof::blocked;
    return row.control.state == State::open ? Proof::blocked : Proof::unreachable;
}

std::string text_of(const probe::Outcome& outcome) {
    return outcome.detail.empty() ? std::string(to_string(outcome.state))
                                  : fmt::format("{} ({})", to_string(outcome.state), outcome.detail);
}

}  // namespace

std::string_view to_string(Proof proof) {
    return kProofs[static_cast<std::size_t>(proof)];
}

std::string log_line_of(const Target& target, const json::array& lines) {
    // Packet rules do not know names.
    for (const bool with_name : {true, false})
        for (const json::value& line : lines)
            if (speaks_of(line, target, with_name))
                return field_text(line, "verdict") + " " + field_text(line, "rule");
    if (!target.inside.address.empty()) return "";
    // A name that got no address was not connected to: what was said of the question is why.
    for (const json::value& line : lines)
        if (field_text(line, "protocol") == "dns" && field_text(line, "name") == target.log_name &&
            field_text(line, "verdict") == "deny")
            return "deny " + field_text(line, "rule");
    return "";
}

ProofRow prove(Target target, probe::Outcome seen, probe::Outcome control, const json::array& lines) {
    ProofRow row{std::move(target), std::move(seen), std::move(control), "", Proof::unproved};
    row.log = log_line_of(row.target, lines);
    row.proof = judge_row(row);
    return row;
}

json::array proof_json(std::span<const ProofRow> rows) {
    json::array out;
    for (const ProofRow& row : rows) {
        json::object line{{"result", to_string(row.proof)},
                          {"what", row.target.what},
                          {"destination", row.target.destination},
                          {"expected", row.target.allowed ? "allow" : "deny"},
                          {"rule", row.target.rule},
                          {"seen", to_string(row.seen.state)},
                          {"seenDetail", row.seen.detail},
                          {"control", row.target.control ? to_string(row.control.state) : "none"},
                          {"controlDetail", row.control.detail}};
        line["log"] = row.log.empty() ? json::value() : json::value(row.log);
        out.push_back(std::move(line));
    }
    return out;
}

std::string proof_table(std::span<const ProofRow> rows) {
    json::array lines;
    for (const ProofRow& row : rows)
        lines.push_back(json::object{
            {"result", to_string(row.proof)},
            {"what", row.target.what},
            {"destination", row.target.destination},
            {"policy", fmt::format("{} {}", row.target.allowed ? "allow" : "deny", row.target.rule)},
            {"seen", text_of(row.seen)},
            {"control", row.target.control ? std::string(to_string(row.control.state)) : "-"},
            {"log", row.log.empty() ? "-" : row.log}});
    return format_table(kProofColumns, lines);
}

std::string proof_summary(std::span<const ProofRow> rows) {
    std::string out;
    for (std::size_t i = 0; i < kProofs.size(); ++i) {
        const auto count = std::ranges::count(rows, static_cast<Proof>(i), &ProofRow::proof);
        if (count > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, kProofs[i]);
    }
    return out;
}

}  // namespace gb::cli
