// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/telemetry_log.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"

namespace gb::agent {
namespace {

std::string_view name(TelemetryLog::Level level) {
    switch (level) {
        case TelemetryLog::Level::info:
            return "info";
        case TelemetryLog::Level::warn:
            return "warn";
        case TelemetryLog::Level::error:
            return "error";
    }
    return "info";
}

std::string json_text(std::string_view text) {
    return log::json_quote(shortened(text, TelemetryLog::kMaxText));
}

}  // namespace

std::string shortened(std::string_view text, std::size_t limit) {
    constexpr std::string_view kMark = "…";
    if (text.size() <= limit) return std::string(text);
    std::size_t end = limit - std::min(limit, kMark.size());
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    return std::string(text.substr(0, end)).append(kMark);
}

void TelemetryLog::add(Level level, std::string_view logger, std::string_view message, const Fields& fields) {
    std::string entry =
        fmt::format(R"({{"sequence":{},"time":{},"level":"{}","message":{},"fields":{{"logger":"{}")",
                    ++last_, now_ms(), name(level), json_text(message), logger);
    for (const auto& [key, value] : fields) entry += fmt::format(R"(,"{}":{})", key, json_text(value));
    entry += "}}";
    bytes_ += entry.size();
    ring_.push_back(std::move(entry));
    while (ring_.size() > kMaxEntries || bytes_ > kMaxBytes) {
        bytes_ -= ring_.front().size();
        ring_.pop_front();
    }
}

void TelemetryLog::restart() {
    ring_.clear();
    bytes_ = 0;
    last_ = 0;
}

TelemetryLog::Page TelemetryLog::after(std::uint64_t sequence) const {
    Page page{.entries = "[", .next = sequence};
    const std::uint64_t gone = last_ - ring_.size();
    if (sequence < gone) page.dropped = gone - sequence;
    for (std::uint64_t at = std::max(sequence, gone); at < last_; ++at) {
        const std::string& entry = ring_[static_cast<std::size_t>(at - gone)];
        page.more = page.entries.size() + entry.size() + 2 > kMaxAnswer;
        if (page.more) break;
        if (page.entries.size() > 1) page.entries += ',';
        page.entries += entry;
        page.next = at + 1;
    }
    page.entries += ']';
    return page;
}

}  // namespace gb::agent
