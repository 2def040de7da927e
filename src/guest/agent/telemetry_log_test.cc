// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/telemetry_log.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace gb::agent {
namespace {

namespace json = boost::json;
using enum TelemetryLog::Level;

json::array entries(const TelemetryLog::Page& page) {
    return json::parse(page.entries).as_array();
}

TEST(TelemetryLog, EntriesComeInOrderAndOnce) {
    TelemetryLog log;
    const std::int64_t before = now_ms();
    log.add(info, "process", "first", {{"pid", "7"}, {"command", "echo \"x\"\n"}});
    log.add(warn, "filesystem", "second", {});
    auto page = log.after(0);
    const json::array all = entries(page);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].at("sequence"), 1);
    EXPECT_EQ(all[0].at("level"), "info");
    EXPECT_EQ(all[0].at("fields"),
              (json::object{{"logger", "process"}, {"pid", "7"}, {"command", "echo \"x\"\n"}}));
    EXPECT_GE(all[0].at("time").as_int64(), before);
    EXPECT_EQ(all[1].at("message"), "second");
    EXPECT_EQ(page.next, 2U);
    EXPECT_FALSE(page.more);
    page = log.after(1);
    EXPECT_EQ(entries(page).size(), 1U);
    page = log.after(2);
    EXPECT_EQ(page.entries, "[]");
    EXPECT_EQ(page.next, 2U);
    EXPECT_EQ(log.after(99).next, 99U);
    EXPECT_EQ(log.after(99).dropped, 0U);
}

TEST(TelemetryLog, OneHundredThousandProcessesStayBounded) {
    TelemetryLog log;
    for (int i = 0; i < 100'000; ++i)
        log.add(info, "process", "process started: true", {{"pid", std::to_string(i)}});
    EXPECT_LE(log.entries(), TelemetryLog::kMaxEntries);
    EXPECT_LE(log.bytes(), TelemetryLog::kMaxBytes);
    // All that is there is read in pages that are no longer than promised, and what is not there is told.
    std::uint64_t at = 0, seen = 0, dropped = 0;
    for (bool more = true; more;) {
        const auto page = log.after(at);
        EXPECT_LE(page.entries.size(), TelemetryLog::kMaxAnswer);
        EXPECT_GT(page.next, at);
        seen += entries(page).size();
        dropped += page.dropped;
        at = page.next;
        more = page.more;
    }
    EXPECT_EQ(at, 100'000U);
    EXPECT_EQ(seen, log.entries());
    EXPECT_EQ(seen + dropped, 100'000U);
}

TEST(TelemetryLog, LargeEntriesAreCutAndDropTheOldest) {
    TelemetryLog log;
    const std::string large(100'000, 'x');
    for (int i = 0; i < 2000; ++i) log.add(info, "process", large, {{"command", large}, {"cwd", large}});
    EXPECT_LE(log.bytes(), TelemetryLog::kMaxBytes);
    EXPECT_GT(log.entries(), 100U);
    const json::array some = entries(log.after(1990));
    ASSERT_EQ(some.size(), 10U);
    EXPECT_EQ(some[0].at("message").as_string().size(), TelemetryLog::kMaxText);
}

TEST(TelemetryLog, BytesThatAreNoTextBecomeText) {
    TelemetryLog log;
    log.add(info, "filesystem", "\xff\xfe\x01", {{"path", std::string(3000, '\x80')}});
    EXPECT_EQ(entries(log.after(0)).size(), 1U);  // parses, so it is valid UTF-8
    EXPECT_EQ(shortened("äöü", 6), "äöü");
    EXPECT_EQ(shortened("äöüä", 6), "ä…");
    EXPECT_EQ(shortened("abcdef", 5), "ab…");
}

// S4: a snapshot's entries belong to the sandbox that it was made of.
TEST(TelemetryLog, ANewIdentityStartsEmpty) {
    TelemetryLog log;
    for (int i = 0; i < 10; ++i) log.add(info, "process", "of the template", {});
    log.restart();
    EXPECT_EQ(log.after(0).entries, "[]");
    log.add(info, "agent", "mine", {});
    const auto page = log.after(0);
    EXPECT_EQ(page.next, 1U);
    EXPECT_EQ(page.dropped, 0U);
    EXPECT_EQ(entries(page).size(), 1U);
}

}  // namespace
}  // namespace gb::agent
