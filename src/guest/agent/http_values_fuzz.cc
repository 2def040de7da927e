// SPDX-License-Identifier: Apache-2.0
// Values of headers. Each is read, written down and read again: both must mean the same.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>
#include <fuzzer/FuzzedDataProvider.h>

#include "base/crypto.h"
#include "guest/agent/http_values.h"

namespace {

using namespace gb::agent;

bool is_printable(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7F; });
}

std::string written(const HeaderValue& value) {
    std::string out = value.value;
    for (const auto& [name, text] : value.parameters) {
        out += "; " + name + "=\"";
        for (char c : text) {
            if (c == '"' || c == '\\') out += '\\';
            out += c;
        }
        out += '"';
    }
    return out;
}

void check_parameters(std::string_view text) {
    const HeaderValue once = parse_header_value(text);
    const HeaderValue twice = parse_header_value(written(once));
    if (once.value != twice.value || once.parameters != twice.parameters) std::abort();
}

void check_file_name(std::string_view name) {
    const std::string disposition = content_disposition(name);
    if (!is_printable(disposition)) std::abort();
    const HeaderValue parsed = parse_header_value(disposition);
    if (parsed.value != "inline" || form_file_name(parsed) != name) std::abort();
}

void check_basic(std::string_view text) {
    const auto user = basic_user("Basic " + gb::base64_encode(text));
    const std::size_t colon = text.find(':');
    if (user.has_value() != (colon != std::string_view::npos) || (user && *user != text.substr(0, colon)))
        std::abort();
    if (const auto other = basic_user(text); other && other->contains(':')) std::abort();
}

void check_coding(const std::string& text) {
    // What is named last counts, and a star only for what is not named.
    if (accepts_coding(text + ", gzip;q=0", "gzip") || !accepts_coding(text + ",gzip; q=0.001", "gzip"))
        std::abort();
    if (accepts_coding(text + ",IDENTITY;Q=0.000", "identity")) std::abort();
    if (text.find_first_of("gG") == std::string::npos && accepts_coding("gzip;q=0," + text + ",*", "gzip"))
        std::abort();
    // Who does not speak of identity accepts it.
    if (text.find_first_of("*iI") == std::string::npos && !accepts_coding(text, "identity")) std::abort();
    // Codings have no case.
    std::string loud = text;
    std::ranges::transform(loud, loud.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    for (const char* coding : {"gzip", "identity"})
        if (accepts_coding(text, coding) != accepts_coding(loud, coding)) std::abort();
}

void check_range_text(const std::string& text, std::uint64_t size) {
    const auto range = parse_range(text, size);
    if (!range && range.error().code != gb::ErrorCode::out_of_range) std::abort();
    if (!range || !*range) return;
    const auto [first, last] = **range;
    if (first > last || last >= size) std::abort();
    const auto again = parse_range(fmt::format("bytes={}-{}", first, last), size);
    if (!again || !*again || (*again)->first != first || (*again)->last != last) std::abort();
}

// Wanted is nothing where no byte of the file is in the range.
void check_range(const std::string& text, std::uint64_t size, std::optional<ByteRange> wanted) {
    const auto range = parse_range(text, size);
    if (range.has_value() != wanted.has_value()) std::abort();
    if (wanted && (!*range || (*range)->first != wanted->first || (*range)->last != wanted->last))
        std::abort();
}

void check_ranges(std::uint64_t a, std::uint64_t b, std::uint64_t size) {
    const auto [first, last] = std::minmax(a, b);
    const std::uint64_t end = size - 1;  // not used of an empty file
    using Wanted = std::optional<ByteRange>;
    check_range(fmt::format("bytes={}-{}", first, last), size,
                first < size ? Wanted({first, std::min(last, end)}) : std::nullopt);
    check_range(fmt::format("bytes={}-", a), size, a < size ? Wanted({a, end}) : std::nullopt);
    check_range(fmt::format("bytes=-{}", a), size,
                a > 0 && size > 0 ? Wanted({size - std::min(a, size), end}) : std::nullopt);
    if (first < last && (!parse_range(fmt::format("bytes={}-{}", last, first), size) ||
                         *parse_range(fmt::format("bytes={}-{}", last, first), size)))
        std::abort();
}

void check_date(std::string_view text) {
    if (const auto time = parse_http_date(text); time && http_date(*time) != text) std::abort();
}

void check_dates(std::int64_t time, std::uint8_t place, char other) {
    std::string text = http_date(time);
    const auto parsed = parse_http_date(text);
    if (text.size() != 29 || !parsed) std::abort();
    if (time >= 0 && time < 253'402'300'800 && *parsed != time) std::abort();
    text[place % text.size()] = other;
    check_date(text);
}

void check_metadata(const std::string& key, const std::string& value) {
    const auto metadata = metadata_headers({{"X-Metadata-" + key, value}, {"Other", "\n"}});
    const bool token = !key.empty() && std::ranges::all_of(key, [](char c) {
        return c > 0x20 && c < 0x7F && !std::string_view("\"(),/:;<=>?@[\\]{}").contains(c);
    });
    if (metadata.has_value() != (token && is_printable(value))) std::abort();
    if (!metadata) return;
    const auto& [name, text] = *metadata->begin();
    if (metadata->size() != 1 || !gb::http::iequals(name, key) || text != value) std::abort();
    if (metadata_headers({{"x-metadata-" + name, text}}) != *metadata) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    FuzzedDataProvider input(data, size);
    const auto a = input.ConsumeIntegral<std::uint64_t>();
    const auto b = input.ConsumeIntegral<std::uint64_t>();
    const auto length = input.ConsumeIntegral<std::uint64_t>();
    const auto place = input.ConsumeIntegral<std::uint8_t>();
    const char other = input.ConsumeIntegral<char>();
    const std::string key = input.ConsumeRandomLengthString(32);
    const std::string text = input.ConsumeRemainingBytesAsString();
    check_parameters(text);
    check_file_name(text);
    check_basic(text);
    check_coding(text);
    for (const std::uint64_t some : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000}, length}) {
        check_range_text(text, some);
        check_range_text("bytes=" + text, some);
        check_ranges(a, b, some);
        check_ranges(a % 1000, b % 1000, some);
    }
    check_date(text);
    check_dates(static_cast<std::int64_t>(a), place, other);
    check_dates(static_cast<std::int64_t>(a % 253'402'300'800), place, other);
    check_metadata(key, text);
    return 0;
}
