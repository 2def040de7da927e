// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/http_values.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/crypto.h"

namespace gb::agent {
namespace {

constexpr std::string_view kBlank = " \t";

std::string_view trim(std::string_view text) {
    const std::size_t first = text.find_first_not_of(kBlank);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

bool is_token_char(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

// Takes a quoted string off the front of `rest`, which starts at the opening quote. A backslash escapes only
// a quote or another backslash: file names of Windows clients hold lone ones.
std::string take_quoted(std::string_view& rest) {
    std::string out;
    std::size_t i = 1;
    for (; i < rest.size() && rest[i] != '"'; ++i) {
        if (rest[i] == '\\' && i + 1 < rest.size() && (rest[i + 1] == '"' || rest[i + 1] == '\\')) ++i;
        out.push_back(rest[i]);
    }
    rest.remove_prefix(std::min(rest.size(), i + 1));
    return out;
}

template <class Number>
bool parse_number(std::string_view text, Number& out) {
    auto [stop, ec] = std::from_chars(text.data(), text.data() + text.size(), out);
    return ec == std::errc{} && stop == text.data() + text.size() && !text.empty();
}

}  // namespace

std::optional<std::string> basic_user(std::string_view authorization) {
    const std::size_t blank = authorization.find(' ');
    if (blank == std::string_view::npos || !http::iequals(authorization.substr(0, blank), "basic")) return {};
    auto decoded = base64_decode(trim(authorization.substr(blank + 1)));
    if (!decoded) return {};
    const std::size_t colon = decoded->find(':');
    if (colon == std::string::npos) return {};
    return decoded->substr(0, colon);
}

const std::string* HeaderValue::find(std::string_view name) const {
    for (const auto& [key, text] : parameters)
        if (key == name) return &text;
    return nullptr;
}

HeaderValue parse_header_value(std::string_view text) {
    HeaderValue out;
    const std::size_t first = text.find(';');
    out.value = lower(trim(text.substr(0, first)));
    if (first == std::string_view::npos) return out;
    std::string_view rest = text.substr(first + 1);
    while (!rest.empty()) {
        const std::size_t stop = rest.find_first_of("=;");
        const std::string name = lower(trim(rest.substr(0, stop)));
        if (stop == std::string_view::npos) break;
        const bool has_value = rest[stop] == '=';
        rest.remove_prefix(stop + 1);
        if (!has_value) continue;
        rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(kBlank)));
        std::string value;
        if (rest.starts_with('"')) {
            value = take_quoted(rest);
            rest.remove_prefix(std::min(rest.size(), rest.find(';')));
        } else {
            const std::size_t end = std::min(rest.size(), rest.find(';'));
            value = std::string(trim(rest.substr(0, end)));
            rest.remove_prefix(end);
        }
        if (rest.starts_with(';')) rest.remove_prefix(1);
        if (!name.empty()) out.parameters.emplace_back(name, std::move(value));
    }
    return out;
}

std::optional<std::string> form_file_name(const HeaderValue& disposition) {
    if (const std::string* extended = disposition.find("filename*")) {
        const std::size_t second = extended->find('\'', std::min(extended->size(), extended->find('\'') + 1));
        if (second != std::string::npos)
            if (auto decoded = http::percent_decode(extended->substr(second + 1), false)) return *decoded;
    }
    const std::string* plain = disposition.find("filename");
    if (plain == nullptr) return {};
    std::string out;
    for (std::size_t i = 0; i < plain->size(); ++i) {
        unsigned code = 0;
        const char* digits = plain->data() + i + 1;
        const bool packed = (*plain)[i] == '%' && i + 2 < plain->size() &&
                            std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2 &&
                            (code < 0x20 || code == '"');
        out.push_back(packed ? static_cast<char>(code) : (*plain)[i]);
        if (packed) i += 2;
    }
    return out;
}

std::string content_disposition(std::string_view file_name) {
    std::string ascii;
    bool exact = true;
    for (char c : file_name) {
        if (c < 0x20 || c == 0x7F || c == '%') {  // negative chars are the bytes above ASCII
            exact = false;
            ascii.push_back('_');
        } else {
            if (c == '"' || c == '\\') ascii.push_back('\\');
            ascii.push_back(c);
        }
    }
    std::string out = fmt::format("inline; filename=\"{}\"", ascii);
    if (!exact) out += "; filename*=UTF-8''" + http::percent_encode(file_name);
    return out;
}

Result<std::optional<ByteRange>> parse_range(std::string_view header, std::uint64_t size) {
    constexpr std::string_view kUnit = "bytes=";
    if (!header.starts_with(kUnit)) return std::nullopt;
    const std::string_view spec = trim(header.substr(kUnit.size()));
    const std::size_t dash = spec.find('-');
    if (dash == std::string_view::npos || spec.find(',') != std::string_view::npos) return std::nullopt;
    const std::string_view from = trim(spec.substr(0, dash));
    const std::string_view to = trim(spec.substr(dash + 1));
    const auto none = [&] {
        return fail(ErrorCode::out_of_range, fmt::format("range '{}' is outside of {} bytes", spec, size));
    };
    ByteRange range{0, size == 0 ? 0 : size - 1};
    if (from.empty()) {
        std::uint64_t suffix = 0;
        if (!parse_number(to, suffix)) return std::nullopt;
        if (suffix == 0 || size == 0) return none();
        range.first = suffix >= size ? 0 : size - suffix;
        return range;
    }
    if (!parse_number(from, range.first)) return std::nullopt;
    if (!to.empty()) {
        std::uint64_t last = 0;
        if (!parse_number(to, last) || last < range.first) return std::nullopt;
        range.last = std::min(range.last, last);
    }
    if (range.first >= size) return none();
    return range;
}

bool accepts_coding(std::string_view accept_encoding, std::string_view coding) {
    bool allowed = coding == "identity";
    bool named = false;
    while (!accept_encoding.empty()) {
        const std::size_t comma = std::min(accept_encoding.size(), accept_encoding.find(','));
        const HeaderValue item = parse_header_value(accept_encoding.substr(0, comma));
        accept_encoding.remove_prefix(std::min(accept_encoding.size(), comma + 1));
        const std::string* quality = item.find("q");
        const bool refused = quality != nullptr && quality->find_first_not_of("0.") == std::string::npos;
        if (item.value == coding) {
            allowed = !refused;
            named = true;
        } else if (item.value == "*" && !named) {
            allowed = !refused;
        }
    }
    return allowed;
}

bool prefers_gzip(std::string_view accept_encoding) {
    if (!accepts_coding(accept_encoding, "gzip")) return false;
    return !accepts_coding(accept_encoding, "identity") ||
           (accept_encoding.find(',') == std::string_view::npos &&
            parse_header_value(accept_encoding).value == "gzip");
}

namespace {
constexpr std::array<std::string_view, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::time_t kFirstDate = -62'167'219'200;  // 0000-01-01 00:00:00
constexpr std::time_t kLastDate = 253'402'300'799;   // 9999-12-31 23:59:59
}  // namespace

std::string http_date(std::time_t time) {
    // The format has four digits for the year, files can be from any time: the nearest that can be said.
    time = std::clamp<std::time_t>(time, kFirstDate, kLastDate);
    std::tm tm{};
    ::gmtime_r(&time, &tm);
    return fmt::format(
        "{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[static_cast<std::size_t>(tm.tm_wday)], tm.tm_mday,
        kMonths[static_cast<std::size_t>(tm.tm_mon)], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

std::optional<std::time_t> parse_http_date(std::string_view text) {
    // Only IMF-fixdate, "Sun, 06 Nov 1994 08:49:37 GMT": nobody sends the two obsolete forms.
    if (text.size() != 29) return {};
    std::tm tm{};
    auto month = std::ranges::find(kMonths, text.substr(8, 3));
    if (month == kMonths.end() || !parse_number(text.substr(5, 2), tm.tm_mday) ||
        !parse_number(text.substr(12, 4), tm.tm_year) || !parse_number(text.substr(17, 2), tm.tm_hour) ||
        !parse_number(text.substr(20, 2), tm.tm_min) || !parse_number(text.substr(23, 2), tm.tm_sec))
        return {};
    tm.tm_mon = static_cast<int>(month - kMonths.begin());
    tm.tm_year -= 1900;
    const std::time_t time = ::timegm(&tm);
    // timegm() takes the 99th of a month and negative hours too. What we would write differently is no date.
    if (http_date(time) != text) return {};
    return time;
}

Result<Metadata> metadata_headers(const http::Headers& headers) {
    constexpr std::string_view kPrefix = "x-metadata-";
    Metadata out;
    for (const auto& [name, value] : headers.items()) {
        std::string key = lower(name);
        if (!key.starts_with(kPrefix)) continue;
        key.erase(0, kPrefix.size());
        if (key.empty() || !std::ranges::all_of(key, is_token_char))
            return fail(ErrorCode::invalid_argument,
                        fmt::format("metadata key '{}' is not an HTTP token", key));
        if (!std::ranges::all_of(value, [](char c) { return c >= 0x20 && c < 0x7F; }))
            return fail(ErrorCode::invalid_argument,
                        fmt::format("value of metadata key '{}' is not printable ASCII", key));
        out[key] = value;
    }
    return out;
}

std::string_view content_type_of(std::string_view file_name) {
    struct Row {
        std::string_view extension, type;
    };
    static constexpr Row kRows[] = {
        {".txt", "text/plain; charset=utf-8"},
        {".log", "text/plain; charset=utf-8"},
        {".md", "text/markdown; charset=utf-8"},
        {".csv", "text/csv; charset=utf-8"},
        {".html", "text/html; charset=utf-8"},
        {".htm", "text/html; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".json", "application/json"},
        {".xml", "text/xml; charset=utf-8"},
        {".pdf", "application/pdf"},
        {".zip", "application/zip"},
        {".gz", "application/gzip"},
        {".png", "image/png"},
        {".jpg", "image/jpeg"},
        {".jpeg", "image/jpeg"},
        {".gif", "image/gif"},
        {".svg", "image/svg+xml"},
        {".webp", "image/webp"},
        {".mp4", "video/mp4"},
        {".wasm", "application/wasm"},
    };
    const std::string name = lower(file_name);
    for (const Row& row : kRows)
        if (name.ends_with(row.extension)) return row.type;
    return "application/octet-stream";
}

}  // namespace gb::agent
