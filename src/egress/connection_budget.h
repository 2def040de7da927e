// SPDX-License-Identifier: Apache-2.0
// How many connections the gateways of a server may carry together, and which sandbox may have one more. A
// sandbox may have as many as are still free: one that takes all it can get ends up with half of them, two
// such with a third each, and a quiet one beside them always finds room. Of the server's descriptors its
// clients have the other half (a connection that is carried has two).
// Source: A. K. Choudhury, E. L. Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches",
// IEEE/ACM Transactions on Networking 6(2), 1998.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace gb::egress {

// Used on one thread.
class ConnectionBudget : public std::enable_shared_from_this<ConnectionBudget> {
  public:
    // One connection's place, which ends with this object. Empty where there was none.
    class Place {
      public:
        Place() = default;
        Place(std::shared_ptr<ConnectionBudget> budget, std::shared_ptr<std::size_t> holder)
            : budget_(std::move(budget)), holder_(std::move(holder)) {
            ++budget_->taken_;
            ++*holder_;
        }
        ~Place() {
            if (!budget_) return;
            --budget_->taken_;
            --*holder_;
        }
        Place(Place&&) noexcept = default;
        Place& operator=(Place&&) = delete;
        explicit operator bool() const { return budget_ != nullptr; }

      private:
        std::shared_ptr<ConnectionBudget> budget_;
        std::shared_ptr<std::size_t> holder_;
    };

    explicit ConnectionBudget(std::size_t most) : most_(most) {}
    // `holder` counts the places of one sandbox.
    [[nodiscard]] Place take(const std::shared_ptr<std::size_t>& holder) {
        if (taken_ + *holder >= most_) return {};
        return {shared_from_this(), holder};
    }
    [[nodiscard]] std::size_t taken() const { return taken_; }

    // Of a process that may have so many descriptors.
    static std::size_t of_descriptors(std::uint64_t limit) { return static_cast<std::size_t>(limit / 2 / 2); }

  private:
    std::size_t most_, taken_ = 0;
};

}  // namespace gb::egress
