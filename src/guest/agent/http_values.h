// SPDX-License-Identifier: Apache-2.0
// Values of the HTTP headers that the agent reads and writes. Pure.
#pragma once

#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "http/message.h"

namespace gb::agent {

// The user of "Authorization: Basic base64(user:password)"; nothing for another scheme or broken base64.
std::optional<std::string> basic_user(std::string_view authorization);

// "form-data; name=\"file\"; filename=\"a b\"": the part before the first ';' in lower case, and the
// parameters.
struct HeaderValue {
    std::string value;
    std::vector<std::pair<std::string, std::string>> parameters;  // names in lower case
    [[nodiscard]] const std::string* find(std::string_view name) const;
};
HeaderValue parse_header_value(std::string_view text);

// The file name of a form part. Browsers write the three bytes that would break the quoting as %22, %0D and
// %0A (WHATWG "multipart/form-data encoding"), httpx all control characters in that way, and nobody a percent
// sign; so only those are decoded. filename* (RFC 5987) wins.
std::optional<std::string> form_file_name(const HeaderValue& disposition);

// "inline; filename=…" with an RFC 5987 form beside the ASCII one when the name needs it.
std::string content_disposition(std::string_view file_name);

// One range of bytes, both ends included (RFC 9110, 14.1.2).
struct ByteRange {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
};
// Nothing: there is no range, or one that may be ignored (several ranges, another unit, bad syntax).
// out_of_range: no byte of the file is in it.
Result<std::optional<ByteRange>> parse_range(std::string_view header, std::uint64_t size);

// Whether Accept-Encoding (RFC 9110, 12.5.3) allows `coding`. An absent header is "" and allows identity
// only.
bool accepts_coding(std::string_view accept_encoding, std::string_view coding);

// Whether a client wants gzip rather than the plain bytes: it refuses those, or gzip is the only coding that
// it names. Most HTTP libraries name all codings that they know in every request; that is no wish, and
// packing costs time.
bool prefers_gzip(std::string_view accept_encoding);

std::string http_date(std::time_t time);
std::optional<std::time_t> parse_http_date(std::string_view text);

// X-Metadata-<key> headers, keys in lower case. invalid_argument for a key that is no token or a value
// outside printable ASCII.
using Metadata = std::map<std::string, std::string>;
Result<Metadata> metadata_headers(const http::Headers& headers);

std::string_view content_type_of(std::string_view file_name);

}  // namespace gb::agent
