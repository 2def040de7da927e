// SPDX-License-Identifier: Apache-2.0
// A map from names to values with a bound: when it is full, what was put in or renewed longest ago goes.
// Pure.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace gb::egress {

template <class Value>
class RecentMap {
  public:
    explicit RecentMap(std::size_t max_names) : max_names_(max_names) {}
    RecentMap(const RecentMap&) = delete;  // the index points into the list
    RecentMap& operator=(const RecentMap&) = delete;

    // Valid until the next put() or erase().
    [[nodiscard]] Value* find(std::string_view name) {
        const auto it = index_.find(name);
        return it == index_.end() ? nullptr : &it->second->second;
    }
    // In place of an older value of the name, which becomes the newest.
    Value& put(std::string_view name, Value value) {
        std::string key(name);  // it may be that of the element that goes
        erase(key);
        if (order_.size() >= max_names_ && !order_.empty()) erase(order_.front().first);
        order_.emplace_back(std::move(key), std::move(value));
        index_.emplace(order_.back().first, std::prev(order_.end()));
        return order_.back().second;
    }
    void erase(std::string_view name) {
        const auto it = index_.find(name);
        if (it == index_.end()) return;
        const auto position = it->second;
        index_.erase(it);  // its key is a view of the element
        order_.erase(position);
    }
    [[nodiscard]] std::size_t size() const { return order_.size(); }

  private:
    using Order = std::list<std::pair<const std::string, Value>>;  // the oldest first
    std::size_t max_names_;
    Order order_;
    std::unordered_map<std::string_view, typename Order::iterator> index_;
};

}  // namespace gb::egress
