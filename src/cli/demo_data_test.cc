// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_data.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace gb::cli {
namespace {

std::string right_result(const DemoData& data) {
    std::string out = "invoice_id,customer,amount,customer_ledger,amount_ledger,verdict\r\n";
    for (const auto& [id, verdict] : data.verdicts)
        out += fmt::format("{},C1,1.00,C1,1.00,{}\r\n", id, verdict);
    return out;
}

std::map<std::string, std::string> rows_of(const std::string& csv) {
    std::map<std::string, std::string> out;
    for (std::size_t at = csv.find('\n') + 1; at < csv.size(); at = csv.find('\n', at) + 1) {
        const std::string line = csv.substr(at, csv.find('\n', at) - at);
        EXPECT_TRUE(out.emplace(line.substr(0, line.find(',')), line).second) << line;
    }
    return out;
}

TEST(DemoData, IsTheSameOnEveryRunAndDiffersFromTheLedgerWhereItSaysSo) {
    const DemoData data = make_demo_data();
    EXPECT_EQ(data.invoices, make_demo_data().invoices);
    EXPECT_EQ(data.ledger, make_demo_data().ledger);
    const auto invoices = rows_of(data.invoices), ledger = rows_of(data.ledger);
    ASSERT_EQ(invoices.size(), 200U);
    EXPECT_EQ(ledger.size(), 196U);
    std::map<std::string, int> counts;
    for (const auto& [id, line] : invoices) {
        const std::string& verdict = data.verdicts.at(id);
        ++counts[verdict];
        const auto entry = ledger.find(id);
        EXPECT_EQ(entry == ledger.end(), verdict == "missing in the ledger") << id;
        EXPECT_EQ(entry != ledger.end() && entry->second == line, verdict == "matched") << id;
    }
    EXPECT_EQ(counts["matched"], 188);
    EXPECT_EQ(counts["amount differs"], 5);
    EXPECT_EQ(counts["missing in the ledger"], 4);
    EXPECT_EQ(counts["customer differs"], 3);
}

TEST(DemoData, TheRightResultIsCounted) {
    const DemoData data = make_demo_data();
    auto counts = check_demo_result(right_result(data), data);
    ASSERT_TRUE(counts) << counts.error().message;
    EXPECT_EQ(*counts, (DemoCounts{200, 188, 12}));
}

TEST(DemoData, AResultThatIsNotTrueIsRefused) {
    const DemoData data = make_demo_data();
    const std::string right = right_result(data);
    std::string wrong = right;
    wrong.replace(wrong.find(",matched"), 8, ",unknown");
    std::string twice = right;
    twice += right.substr(right.find("INV-"), right.find('\n', right.find("INV-")) - right.find("INV-") + 1);
    std::string less = right.substr(0, right.rfind("INV-"));
    for (const std::string& text :
         {std::string(), std::string("\n"), std::string("a,b\n"), wrong, twice, less,
          right + "INV-99999,,,,,matched\n", right + "\n", right.substr(0, right.size() - 1)})
        EXPECT_FALSE(check_demo_result(text, data)) << text.substr(0, 200);
}

}  // namespace
}  // namespace gb::cli
