// SPDX-License-Identifier: Apache-2.0
#include "control/listing.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "http/message.h"

namespace gb {
namespace {

constexpr std::string_view kSeparator = "__";

std::string make_token(const SandboxRecord& last, bool ascending) {
    return base64url_encode(
        fmt::format("{}{}{}{}", rfc3339(last.started_ms), kSeparator, last.id, ascending ? "__asc" : ""));
}

struct Cursor {
    std::int64_t started_ms;
    std::string id;
};

Result<Cursor> parse_token(const std::string& token, bool ascending) {
    auto bad = [] { return fail(ErrorCode::invalid_argument, "Invalid next token"); };
    auto text = base64url_decode(token);
    if (!text) return bad();
    bool token_ascending = text->ends_with("__asc");
    if (token_ascending) text->resize(text->size() - 5);
    if (token_ascending != ascending) return bad();
    std::size_t at = text->find(kSeparator);
    if (at == std::string::npos) return bad();
    auto time = parse_rfc3339(text->substr(0, at));
    if (!time) return bad();
    return Cursor{*time, text->substr(at + kSeparator.size())};
}

bool matches(const SandboxRecord& record, const ListQuery& query) {
    if (shown_as(record.state) == Shown::hidden) return false;
    if (query.started_after_ms && record.started_ms < *query.started_after_ms) return false;
    if (query.template_ref && *query.template_ref != record.template_id && *query.template_ref != record.template_name)
        return false;
    return std::ranges::all_of(query.metadata, [&](const auto& pair) {
        auto found = record.metadata.find(pair.first);
        return found != record.metadata.end() && found->second == pair.second;
    });
}

}  // namespace

Shown shown_as(SandboxState state) {
    using enum SandboxState;
    switch (state) {
        case running:
            return Shown::running;
        case pausing:
        case paused:
        case resuming:
            return Shown::paused;
        case creating:
        case killing:
            break;
    }
    return Shown::hidden;
}

Result<ListPage> list_page(std::vector<const SandboxRecord*> records, const ListQuery& query) {
    ListPage page;
    std::erase_if(records, [&](const SandboxRecord* record) {
        if (!matches(*record, query)) return true;
        const bool running = shown_as(record->state) == Shown::running;
        page.running += running ? 1 : 0;
        return running ? !query.running : !query.paused;
    });
    auto before = [&](std::int64_t a_ms, const std::string& a_id, std::int64_t b_ms, const std::string& b_id) {
        auto a = std::tie(a_ms, a_id), b = std::tie(b_ms, b_id);
        return query.ascending ? a < b : b < a;
    };
    if (!query.next_token.empty()) {
        GB_TRY_ASSIGN(Cursor cursor, parse_token(query.next_token, query.ascending));
        std::erase_if(records, [&](const SandboxRecord* record) {
            return !before(cursor.started_ms, cursor.id, record->started_ms, record->id);
        });
    }
    const std::size_t count = std::min(query.limit, records.size());
    std::ranges::partial_sort(records, records.begin() + static_cast<std::ptrdiff_t>(count),
                              [&](const SandboxRecord* a, const SandboxRecord* b) {
                                  return before(a->started_ms, a->id, b->started_ms, b->id);
                              });
    for (std::size_t i = 0; i < count; ++i) page.items.push_back(*records[i]);
    if (count < records.size() && count > 0) page.next_token = make_token(page.items.back(), query.ascending);
    return page;
}

Result<std::map<std::string, std::string>> parse_metadata_filter(std::string_view value) {
    GB_TRY_ASSIGN(std::string text, http::percent_decode(value, true));
    std::map<std::string, std::string> out;
    std::string_view rest = text;
    while (!rest.empty()) {
        std::size_t amp = rest.find('&');
        std::string_view pair = rest.substr(0, amp);
        rest = amp == std::string_view::npos ? std::string_view() : rest.substr(amp + 1);
        if (std::ranges::count(pair, '=') != 1)
            return fail(ErrorCode::invalid_argument,
                        fmt::format("metadata filter: '{}' is not of the form key=value", pair));
        std::size_t equals = pair.find('=');
        GB_TRY_ASSIGN(std::string key, http::percent_decode(pair.substr(0, equals), true));
        GB_TRY_ASSIGN(std::string wanted, http::percent_decode(pair.substr(equals + 1), true));
        out[std::move(key)] = std::move(wanted);
    }
    return out;
}

}  // namespace gb
