// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_data.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <fmt/format.h>

namespace gb::cli {
namespace {

constexpr unsigned kSeed = 20260101;
constexpr int kRows = 200, kCustomers = 40;
constexpr int kWrongAmount = 5, kMissing = 4, kWrongCustomer = 3;

struct Row {
    std::string id, customer, issued;
    int cents = 0;
};

// The library's distributions differ between implementations; its engines do not.
class Numbers {
  public:
    unsigned below(unsigned limit) { return static_cast<unsigned>(engine_()) % limit; }
    template <class T>
    void shuffle(std::vector<T>& items) {
        for (std::size_t left = items.size(); left > 1; --left)
            std::swap(items[left - 1], items[below(static_cast<unsigned>(left))]);
    }

  private:
    std::mt19937 engine_{kSeed};
};

std::string customer(unsigned number) {
    return fmt::format("C{:04}", number + 1);
}

std::string csv_of(const std::vector<Row>& rows) {
    std::string out = "invoice_id,customer,issued,amount\n";
    for (const Row& row : rows)
        out += fmt::format("{},{},{},{}.{:02}\n", row.id, row.customer, row.issued, row.cents / 100,
                           row.cents % 100);
    return out;
}

std::vector<std::string_view> split(std::string_view text, char at) {
    std::vector<std::string_view> out;
    for (;;) {
        const std::size_t end = text.find(at);
        out.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return out;
        text.remove_prefix(end + 1);
    }
}

}  // namespace

DemoData make_demo_data() {
    Numbers numbers;
    std::vector<Row> invoices;
    std::vector<std::size_t> order;
    for (int n = 1; n <= kRows; ++n) {
        const unsigned number = numbers.below(kCustomers);
        const unsigned month = numbers.below(12) + 1, day = numbers.below(28) + 1;
        invoices.push_back({fmt::format("INV-{:05}", n), customer(number),
                            fmt::format("2026-{:02}-{:02}", month, day),
                            static_cast<int>(numbers.below(2'500'000)) + 5'000});
        order.push_back(order.size());
    }
    DemoData out;
    for (const Row& row : invoices) out.verdicts[row.id] = "matched";
    numbers.shuffle(order);
    std::vector<Row> ledger = invoices;
    std::set<std::string> missing;
    for (std::size_t i = 0; i < kWrongAmount + kMissing + kWrongCustomer; ++i) {
        Row& row = ledger[order[i]];
        if (i < kWrongAmount) {
            constexpr int kDifferences[] = {-1000, 10, 10'000};
            row.cents += kDifferences[numbers.below(3)];
            out.verdicts[row.id] = "amount differs";
        } else if (i < kWrongAmount + kMissing) {
            missing.insert(row.id);
            out.verdicts[row.id] = "missing in the ledger";
        } else {
            std::string other = row.customer;
            while (other == row.customer) other = customer(numbers.below(kCustomers));
            row.customer = other;
            out.verdicts[row.id] = "customer differs";
        }
    }
    std::erase_if(ledger, [&](const Row& row) { return missing.contains(row.id); });
    numbers.shuffle(ledger);
    out.invoices = csv_of(invoices);
    out.ledger = csv_of(ledger);
    return out;
}

Result<DemoCounts> check_demo_result(std::string_view csv, const DemoData& data) {
    std::string plain(csv);
    std::erase(plain, '\r');  // Python's csv writes one in front of each line's end
    if (!plain.ends_with('\n')) return fail(ErrorCode::data_loss, "result.csv does not end with a line");
    plain.pop_back();
    const auto lines = split(plain, '\n');
    if (lines[0] != "invoice_id,customer,amount,customer_ledger,amount_ledger,verdict")
        return fail(ErrorCode::data_loss, "result.csv has other columns");
    DemoCounts counts;
    std::set<std::string, std::less<>> seen;
    for (std::size_t i = 1; i < lines.size(); ++i) {
        const auto fields = split(lines[i], ',');
        const auto expected =
            fields.size() == 6 ? data.verdicts.find(std::string(fields[0])) : data.verdicts.end();
        if (expected == data.verdicts.end() || !seen.emplace(fields[0]).second)
            return fail(ErrorCode::data_loss,
                        fmt::format("line {} of result.csv is about no invoice", i + 1));
        if (fields[5] != expected->second)
            return fail(ErrorCode::data_loss,
                        fmt::format("{} is '{}', and result.csv says '{}'", expected->first, expected->second,
                                    fields[5].substr(0, 40)));
        ++counts.rows;
        ++(fields[5] == "matched" ? counts.matched : counts.mismatched);
    }
    if (seen.size() != data.verdicts.size())
        return fail(ErrorCode::data_loss,
                    fmt::format("result.csv has {} of {} invoices", seen.size(), data.verdicts.size()));
    return counts;
}

}  // namespace gb::cli
