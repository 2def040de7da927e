// SPDX-License-Identifier: Apache-2.0
// What teams may use, and what it costs. Comes from the configuration; pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gb {

struct Plan {
    std::string name;
    int max_sandboxes = 20;         // running at once
    int max_lifetime_s = 3600;      // of one continuous run
    double creates_per_second = 1;  // on average; bursts of max_sandboxes are allowed
    double requests_per_second = 20'000.0 / 30;  // to the control plane, on average; bursts of 20,000 are allowed
    int max_cpu_count = 8;          // of one sandbox
    int max_memory_mib = 8192;
    int max_disk_mib = 10'240;
};

// Billionths of a dollar, so that sums come out to the cent.
struct Prices {
    std::int64_t vcpu_second_nano = 14'000;
    std::int64_t gib_second_nano = 4'500;
};

class Plans {
  public:
    // The two of the contract: "hobby" and "pro" (contract 7.11).
    Plans();
    // Replaces the plan of that name or adds it.
    void set(Plan plan);
    [[nodiscard]] const Plan* find(std::string_view name) const;
    // The plan of that name; of an unknown one the tightest there is: a mistake in the configuration opens nothing.
    [[nodiscard]] const Plan& of(std::string_view name) const;
    [[nodiscard]] const std::vector<Plan>& all() const { return plans_; }

  private:
    std::vector<Plan> plans_;
};

}  // namespace gb
