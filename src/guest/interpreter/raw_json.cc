// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/raw_json.h"

#include <algorithm>

#include <boost/json/parse.hpp>

namespace gb::interpreter {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

class Scanner {
  public:
    explicit Scanner(std::string_view text) : text_(text) {}

    bool take(char c) {
        skip_blanks();
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }

    // One whole value. Structure only: what it holds has been checked before.
    std::string_view value() {
        skip_blanks();
        const std::size_t start = at_;
        int depth = 0;
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '"') {
                skip_string();
                if (depth == 0) break;
                continue;
            }
            if (depth == 0 && at_ > start && (c == ',' || c == '}' || c == ']')) break;
            ++at_;
            if (c == '{' || c == '[') ++depth;
            if ((c == '}' || c == ']') && --depth <= 0) break;
        }
        std::string_view all = text_.substr(start, at_ - start);
        const std::size_t last = all.find_last_not_of(kBlanks);
        return last == std::string_view::npos ? std::string_view() : all.substr(0, last + 1);
    }

  private:
    void skip_blanks() { at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size()); }
    void skip_string() {
        for (++at_; at_ < text_.size(); ++at_) {
            if (text_[at_] == '\\') {
                ++at_;
            } else if (text_[at_] == '"') {
                ++at_;
                return;
            }
        }
        at_ = text_.size();
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

std::optional<std::string> decoded_string(std::string_view text) {
    if (!text.starts_with('"')) return std::nullopt;
    boost::json::parse_options options;
    options.allow_invalid_utf8 = true;
    boost::system::error_code error;
    boost::json::value value = boost::json::parse(text, error, {}, options);
    if (error || !value.is_string()) return std::nullopt;
    return std::string(std::string_view(value.get_string()));
}

std::vector<RawMember> raw_members(std::string_view object) {
    std::vector<RawMember> members;
    Scanner scanner(object);
    if (!scanner.take('{')) return members;
    do {
        std::optional<std::string> key = decoded_string(scanner.value());
        if (!key || !scanner.take(':')) break;  // an empty object
        members.push_back({*std::move(key), scanner.value()});
    } while (scanner.take(','));
    return members;
}

std::optional<std::string_view> raw_member(std::string_view object, std::string_view key) {
    for (const RawMember& member : raw_members(object))
        if (member.key == key) return member.value;
    return std::nullopt;
}

std::string on_one_line(std::string_view json) {
    std::string line(json);
    std::ranges::replace_if(line, [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return line;
}

}  // namespace gb::interpreter
