// SPDX-License-Identifier: Apache-2.0
#include "http/head_check.h"

#include <algorithm>

#include "http/message.h"

namespace gb::http {
namespace {

constexpr std::size_t kLongestLength = 18;  // digits: fits 63 bits

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_token_char(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("!#$%&'*+-.^_`|~").contains(c);
}

std::unexpected<Error> bad(std::string_view what) {
    return fail(ErrorCode::invalid_argument, "malformed HTTP message: " + std::string(what));
}

// The head goes on behind what there is.
Result<bool> more(bool too_long) {
    if (too_long) return fail(ErrorCode::too_large, "the head of a message is larger than allowed");
    return false;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

// "HTTP/1.1 200 OK"; the last blank may be missing where there is no reason.
bool is_status_line(std::string_view line) {
    return (line.starts_with("HTTP/1.1 ") || line.starts_with("HTTP/1.0 ")) && line.size() >= 12 &&
           line[9] != '0' && std::ranges::all_of(line.substr(9, 3), is_digit) &&
           (line.size() == 12 || line[12] == ' ') && is_field_value(line);
}

bool is_request_line(std::string_view line) {
    const std::size_t first = line.find(' '), last = line.rfind(' ');
    if (first == std::string_view::npos || last <= first + 1) return false;
    const std::string_view target = line.substr(first + 1, last - first - 1), version = line.substr(last + 1);
    return is_token(line.substr(0, first)) && (version == "HTTP/1.1" || version == "HTTP/1.0") &&
           std::ranges::none_of(target, [](unsigned char c) { return c <= 0x20 || c == 0x7f; });
}

}  // namespace

bool is_token(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, is_token_char);
}

bool is_field_value(std::string_view text) {
    return std::ranges::none_of(text, [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
}

Result<bool> HeadCheck::look(std::string_view input, std::size_t most) {
    const bool too_long = input.size() > most;
    input = input.substr(0, most);
    for (;;) {
        const std::size_t end = input.find_first_of(std::string_view("\r\n\0", 3), scanned_);
        if (end == std::string_view::npos) {
            scanned_ = input.size();
            return more(too_long);
        }
        scanned_ = end;
        if (input[end] != '\r') return bad("a line does not end with CR LF");
        if (end + 1 == input.size()) return more(too_long);
        if (input[end + 1] != '\n') return bad("CR inside a line");
        const std::string_view line = input.substr(seen_, end - seen_);
        if (line.empty() && !start_line_) return true;
        GB_TRY(check_line(line));
        seen_ = scanned_ = end + 2;
    }
}

Status HeadCheck::check_line(std::string_view line) {
    if (!start_line_) return check_field(line);
    start_line_ = false;
    if (kind_ == Kind::request ? !is_request_line(line) : !is_status_line(line)) return bad("bad first line");
    old_version_ = kind_ == Kind::request ? line.ends_with("1.0") : line.starts_with("HTTP/1.0");
    return {};
}

Status HeadCheck::check_field(std::string_view line) {
    if (line.front() == ' ' || line.front() == '\t') return bad("folded header");
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return bad("bad header name");
    const std::string_view name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
    if (!is_field_value(value)) return bad("control byte in a header");
    if (iequals(name, "Content-Length")) {
        if (has_length_) return bad("more than one Content-Length");
        if (value.empty() || value.size() > kLongestLength || !std::ranges::all_of(value, is_digit))
            return bad("bad Content-Length");
        has_length_ = true;
    } else if (iequals(name, "Transfer-Encoding")) {
        if (has_coding_) return bad("more than one Transfer-Encoding");
        if (!iequals(value, "chunked")) return bad("unknown Transfer-Encoding");
        if (old_version_) return bad("Transfer-Encoding in HTTP/1.0");
        has_coding_ = true;
    }
    if (has_length_ && has_coding_) return bad("Content-Length with Transfer-Encoding");
    return {};
}

}  // namespace gb::http
