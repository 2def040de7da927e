// SPDX-License-Identifier: Apache-2.0
// HTTP messages without their transport: headers, heads, request targets (RFC 9110, RFC 3986).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gb::http {

// Ordered, names compared without case. Small: looked up by walking.
class Headers {
  public:
    using Item = std::pair<std::string, std::string>;

    Headers() = default;
    Headers(std::initializer_list<Item> items) : items_(items) {}

    void add(std::string name, std::string value) { items_.emplace_back(std::move(name), std::move(value)); }
    void set(std::string_view name, std::string value);  // replaces all of that name
    void remove(std::string_view name);
    [[nodiscard]] const std::string* find(std::string_view name) const;  // the first, or null
    [[nodiscard]] std::string_view get(std::string_view name) const;     // the first, or ""
    [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
    // Whether a comma-separated header lists `token` (e.g. Connection: keep-alive, Upgrade).
    [[nodiscard]] bool lists(std::string_view name, std::string_view token) const;
    [[nodiscard]] const std::vector<Item>& items() const { return items_; }

  private:
    std::vector<Item> items_;
};

bool iequals(std::string_view a, std::string_view b);  // ASCII, without case

struct RequestHead {
    std::string method = "GET";
    std::string target = "/";  // as on the wire: path and query, still percent-encoded
    Headers headers;
};

struct ResponseHead {
    int status = 200;
    Headers headers;
};

// A request target taken apart and percent-decoded. `raw_path` keeps the encoding (for routes whose parameters may
// hold an encoded slash).
struct Target {
    std::string path;
    std::string raw_path;
    std::string raw_target;  // raw_path with the query, without a fragment: what to pass on
    std::vector<std::pair<std::string, std::string>> query;  // '+' in values means a blank

    [[nodiscard]] const std::string* find(std::string_view name) const;  // the first of that name, or null
    [[nodiscard]] std::string get(std::string_view name) const;         // the first of that name, or ""
    [[nodiscard]] std::vector<std::string> segments() const;            // decoded path segments, empty ones left out
};
Result<Target> parse_target(std::string_view target);

std::string percent_encode(std::string_view text);  // everything but RFC 3986 "unreserved"
Result<std::string> percent_decode(std::string_view text, bool plus_is_blank);

std::string_view status_text(int status);
std::string write_head(const RequestHead& head);
std::string write_head(const ResponseHead& head);

}  // namespace gb::http
