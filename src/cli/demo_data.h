// SPDX-License-Identifier: Apache-2.0
// The demo's invoices, the ledger they are checked against, and whether a result says of each what is true.
// Pure; the same on every run.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gb::cli {

struct DemoData {
    std::string invoices, ledger;                 // CSV files
    std::map<std::string, std::string> verdicts;  // of each invoice, as the script has to find them
};

// 200 invoices: 188 agree with the ledger; of the others 5 have another amount there, 4 are missing and 3
// name another customer.
DemoData make_demo_data();

struct DemoCounts {
    int rows = 0, matched = 0, mismatched = 0;
    bool operator==(const DemoCounts&) const = default;
};

// result.csv as the sandbox gave it, which may be anything. data_loss when it is no such file, or when it
// does not say of each invoice once what is true of it.
Result<DemoCounts> check_demo_result(std::string_view csv, const DemoData& data);

}  // namespace gb::cli
