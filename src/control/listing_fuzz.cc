// SPDX-License-Identifier: Apache-2.0
// Cursors and metadata filters, as strangers write them: refused, or a page that is in order and within its limit.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "control/listing.h"

namespace {

gb::SandboxRecord record(int i) {
    gb::SandboxRecord out;
    out.id = "i" + std::to_string(i);
    out.started_ms = 1'700'000'000'000 + i / 2;
    out.state = i % 3 == 0 ? gb::SandboxState::paused : gb::SandboxState::running;
    out.metadata = {{"a", std::to_string(i % 2)}};
    return out;
}

const std::vector<gb::SandboxRecord>& records() {
    static const std::vector<gb::SandboxRecord> all = [] {
        std::vector<gb::SandboxRecord> out;
        for (int i = 0; i < 12; ++i) out.push_back(record(i));
        return out;
    }();
    return all;
}

void check_cursor(const std::string& token, bool ascending) {
    std::vector<const gb::SandboxRecord*> pointers;
    for (const auto& one : records()) pointers.push_back(&one);
    gb::ListQuery query;
    query.ascending = ascending;
    query.limit = 5;
    query.next_token = token;
    const auto page = gb::list_page(pointers, query);
    if (!page) {
        if (page.error().code != gb::ErrorCode::invalid_argument) std::abort();
        return;
    }
    if (page->items.size() > query.limit) std::abort();
    for (std::size_t i = 1; i < page->items.size(); ++i) {
        const auto &a = page->items[i - 1], &b = page->items[i];
        const auto left = std::tie(a.started_ms, a.id), right = std::tie(b.started_ms, b.id);
        if (!(ascending ? left < right : right < left)) std::abort();
    }
    // What is handed out is understood again, and leads on.
    if (page->next_token.empty()) return;
    query.next_token = page->next_token;
    const auto next = gb::list_page(pointers, query);
    if (!next || (!next->items.empty() && next->items[0].id == page->items.back().id)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    check_cursor(text, false);
    check_cursor(text, true);
    if (auto pairs = gb::parse_metadata_filter(text); !pairs && pairs.error().code != gb::ErrorCode::invalid_argument)
        std::abort();
    return 0;
}
