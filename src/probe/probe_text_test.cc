// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "probe/probe.h"

namespace gb::probe {
namespace {

TEST(ProbeText, ProbesComeBackAsTheyWere) {
    for (const Probe& probe :
         {Probe{Way::tcp, "1.1.1.1", 853, "", ""}, Probe{Way::tls, "", 443, "a.example", "9.9.9.9"},
          Probe{Way::ipv6, "2001:db8::1", 443, "", ""}, Probe{Way::raw, "1.1.1.1", 47, "", ""}}) {
        auto back = parse_probe(format_probe(probe));
        ASSERT_TRUE(back) << format_probe(probe);
        EXPECT_EQ(*back, probe);
    }
}

TEST(ProbeText, WhatIsNoProbeIsRefused) {
    for (const char* text : {"", "tcp", "tcp,1.1.1.1", "tcp,1.1.1.1,99999,,", "tcp,1.1.1.1,-1,,",
                             "tcp,1.1.1.1,,,", "carrier-pigeon,1.1.1.1,1,,", "tcp,1.1.1.1,1,,,"})
        EXPECT_FALSE(parse_probe(text)) << text;
}

TEST(ProbeText, OutcomesComeBackAsTheyWere) {
    for (const Outcome& outcome :
         {Outcome{State::open, "HTTP/1.1 200 OK", "1.1.1.1"}, Outcome{State::closed, "", ""},
          Outcome{State::not_tried, "socket: not permitted", ""}}) {
        auto back = parse_outcome(format_outcome(7, outcome));
        ASSERT_TRUE(back) << format_outcome(7, outcome);
        EXPECT_EQ(back->index, 7U);
        EXPECT_EQ(back->outcome, outcome);
    }
}

TEST(ProbeText, AGuestCanPrintWhatItLikes) {
    for (const char* line :
         {"", " ", "1", "1 ", "x open - y", "1 ajar - y", "-1 open - y", "99999999999999999999999 open - y"})
        EXPECT_FALSE(parse_outcome(line)) << line;
    auto hostile = parse_outcome("0 open \x1b[2J red\x1b[31m\x07");
    ASSERT_TRUE(hostile);
    EXPECT_EQ(hostile->outcome.address, "?[2J");
    EXPECT_EQ(hostile->outcome.detail, "red?[31m?");
    EXPECT_LE(parse_outcome("0 open - " + std::string(100'000, 'x'))->outcome.detail.size(), 200U);
}

}  // namespace
}  // namespace gb::probe
