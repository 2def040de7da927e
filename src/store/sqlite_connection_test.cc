// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite_connection.h"

#include <gtest/gtest.h>

namespace gb {
namespace {

struct ConnectionTest : testing::Test {
    SqliteConnection db{":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, 0};
    ConnectionTest() { db.exec("CREATE TABLE number (value INTEGER UNIQUE)"); }
    void put(int value) {
        auto s = db.prepare("INSERT INTO number VALUES (?)");
        s->bind(1, value);
        s->exec();
    }
    std::vector<int> all() {
        std::vector<int> out;
        auto q = db.prepare("SELECT value FROM number ORDER BY value");
        while (q->executeStep()) out.push_back(q->getColumn(0).getInt());
        return out;
    }
};

TEST_F(ConnectionTest, StatementsAreUsedAgain) {
    const void* first = nullptr;
    {
        auto statement = db.prepare("SELECT 1");
        first = statement.get();
    }
    auto again = db.prepare("SELECT 1");
    EXPECT_EQ(again.get(), first);
}

TEST_F(ConnectionTest, NothingStaysBound) {
    put(7);
    db.run("INSERT INTO number VALUES (?)");
    EXPECT_EQ(all(), (std::vector<int>{0, 7}));  // NULL reads as 0
}

TEST_F(ConnectionTest, TheSameTextInsideItself) {
    put(1);
    put(2);
    auto outer = db.prepare("SELECT value FROM number ORDER BY value");
    std::vector<int> seen;
    while (outer->executeStep()) {
        seen.push_back(outer->getColumn(0).getInt());
        EXPECT_EQ(all().size(), 2U);
    }
    EXPECT_EQ(seen, (std::vector<int>{1, 2}));
}

TEST_F(ConnectionTest, AFailedStatementCanBeUsedAgain) {
    put(1);
    EXPECT_THROW(put(1), SQLite::Exception);
    put(2);
    EXPECT_EQ(all(), (std::vector<int>{1, 2}));
}

TEST_F(ConnectionTest, AStatementLeftHalfWayHoldsNothing) {
    put(1);
    put(2);
    {
        auto q = db.prepare("SELECT value FROM number");
        ASSERT_TRUE(q->executeStep());
    }
    db.exec("DROP TABLE number");  // refused as locked while a statement reads it
}

}  // namespace
}  // namespace gb
