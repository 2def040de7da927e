// SPDX-License-Identifier: Apache-2.0
#include "cli/egress_proof.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace gb::cli {
namespace {

namespace json = boost::json;
using enum probe::State;

Target target(bool allowed) {
    Target out;
    out.what = "TCP";
    out.destination = "1.1.1.1 port 22";
    out.inside = {probe::Way::tcp, "1.1.1.1", 22, "", ""};
    out.control = out.inside;
    out.allowed = allowed;
    out.rule = allowed ? "default" : "deny 0.0.0.0/0";
    out.log_protocol = "tcp";
    out.log_address = "1.1.1.1";
    out.log_port = 22;
    return out;
}

json::object line(const char* verdict, const char* rule = "r", const char* name = nullptr, int port = 22) {
    json::object out{
        {"verdict", verdict}, {"protocol", "tcp"}, {"address", "1.1.1.1"}, {"port", port}, {"rule", rule}};
    if (name != nullptr) out["name"] = name;
    return out;
}

Proof proof(bool allowed, probe::State seen, probe::State control, json::array lines = {}) {
    return prove(target(allowed), {seen, "", ""}, {control, "", ""}, lines).proof;
}

TEST(EgressProof, WhatMayNotPass) {
    EXPECT_EQ(proof(false, open, open), Proof::breach);
    EXPECT_EQ(proof(false, open, closed, {line("deny")}), Proof::breach);
    EXPECT_EQ(proof(false, closed, open, {line("allow")}), Proof::breach) << "the log says that it left";
    EXPECT_EQ(proof(false, closed, open), Proof::proved);
    EXPECT_EQ(proof(false, closed, closed, {line("deny")}), Proof::proved);
    EXPECT_EQ(proof(false, closed, closed), Proof::unproved) << "perhaps nobody is there";
    EXPECT_EQ(proof(false, sent, sent, {line("deny")}), Proof::proved);
    EXPECT_EQ(proof(false, sent, sent), Proof::unproved);
    EXPECT_EQ(proof(false, not_tried, open), Proof::unproved);
}

TEST(EgressProof, WhatMayPass) {
    EXPECT_EQ(proof(true, open, open, {line("allow")}), Proof::as_allowed);
    EXPECT_EQ(proof(true, closed, open), Proof::blocked);
    EXPECT_EQ(proof(true, closed, closed, {line("deny")}), Proof::blocked);
    EXPECT_EQ(proof(true, closed, closed, {line("allow")}), Proof::unreachable);
    EXPECT_EQ(proof(true, sent, sent, {line("allow")}), Proof::as_allowed);
    EXPECT_EQ(proof(true, not_tried, open), Proof::unproved);
}

TEST(EgressProof, LinesOfOthersSayNothing) {
    EXPECT_EQ(
        log_line_of(target(false), {line("deny", "x", nullptr, 23), line("end"), line("deny", "x", "other")}),
        "");
    Target named = target(false);
    named.log_name = "ok.example.com";
    EXPECT_EQ(log_line_of(named, {line("allow", "a"), line("deny", "b", "ok.example.com")}), "deny b");
    EXPECT_EQ(log_line_of(named, {line("allow", "a"), line("deny", "b", "other")}), "allow a")
        << "packet rules know no names";
    named.log_address = named.inside.address = "";
    EXPECT_EQ(log_line_of(named, {line("allow", "a")}), "");
    json::object question = line("deny", "q", "ok.example.com");
    question["protocol"] = "dns";
    EXPECT_EQ(log_line_of(named, {line("allow", "a"), question}), "deny q");
}

TEST(EgressProof, FaultsAreCountedAndShown) {
    std::vector<ProofRow> rows;
    rows.push_back(prove(target(false), {open, "", ""}, {open, "", ""}, {}));
    rows.push_back(prove(target(false), {closed, "", ""}, {open, "", ""}, {line("deny", "private")}));
    EXPECT_EQ(proof_summary(rows), "1 proved, 1 BREACH");
    EXPECT_TRUE(is_fault(rows[0].proof));
    EXPECT_FALSE(is_fault(rows[1].proof));
    EXPECT_NE(proof_table(rows).find("deny private"), std::string::npos);
    const json::array out = proof_json(rows);
    EXPECT_EQ(out[0].at("result"), "BREACH");
    EXPECT_TRUE(out[0].at("log").is_null());
    EXPECT_EQ(out[1].at("log"), "deny private");
}

}  // namespace
}  // namespace gb::cli
