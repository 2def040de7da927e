// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "probe/probe.h"

namespace gb::probe {
namespace {

constexpr std::array<std::string_view, 11> kWays{"tcp", "http",    "tls", "udp",     "quic", "icmp",
                                                 "dns", "dns-tcp", "raw", "spoofed", "ipv6"};
constexpr std::array<std::string_view, 4> kStates{"open", "closed", "sent", "not-tried"};
constexpr std::size_t kMaxDetail = 200;

template <std::size_t N>
std::optional<std::size_t> index_in(const std::array<std::string_view, N>& list, std::string_view text) {
    const auto at = std::ranges::find(list, text);
    if (at == list.end()) return std::nullopt;
    return static_cast<std::size_t>(at - list.begin());
}

template <class T>
std::optional<T> number(std::string_view text) {
    T value{};
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

// The text up to the next `separator`, which is taken away with it.
std::string_view take(std::string_view& text, char separator) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view out = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return out;
}

std::string printable(std::string_view text) {
    std::string out(text.substr(0, kMaxDetail));
    std::ranges::replace_if(out, [](char c) { return c < ' ' || c > '~'; }, '?');
    return out;
}

}  // namespace

std::string_view to_string(Way way) {
    return kWays[static_cast<std::size_t>(way)];
}

std::string_view to_string(State state) {
    return kStates[static_cast<std::size_t>(state)];
}

std::string format_probe(const Probe& probe) {
    return fmt::format("{},{},{},{},{}", to_string(probe.way), probe.address, probe.port, probe.name,
                       probe.resolver);
}

Result<Probe> parse_probe(std::string_view text) {
    const auto bad = [&] { return fail(ErrorCode::invalid_argument, fmt::format("'{}' is no probe", text)); };
    if (std::ranges::count(text, ',') != 4) return bad();
    std::string_view rest = text;
    const auto way = index_in(kWays, take(rest, ','));
    if (!way) return bad();
    Probe out;
    out.way = static_cast<Way>(*way);
    out.address = take(rest, ',');
    const auto port = number<std::uint16_t>(take(rest, ','));
    if (!port) return bad();
    out.port = *port;
    out.name = take(rest, ',');
    out.resolver = rest;
    return out;
}

std::string format_outcome(std::size_t index, const Outcome& outcome) {
    return fmt::format("{} {} {} {}", index, to_string(outcome.state),
                       outcome.address.empty() ? "-" : outcome.address, outcome.detail);
}

std::optional<NumberedOutcome> parse_outcome(std::string_view line) {
    NumberedOutcome out;
    const auto index = number<std::size_t>(take(line, ' '));
    const auto state = index_in(kStates, take(line, ' '));
    if (!index || !state) return std::nullopt;
    out.index = *index;
    out.outcome.state = static_cast<State>(*state);
    const std::string_view address = take(line, ' ');
    if (address != "-") out.outcome.address = printable(address);
    out.outcome.detail = printable(line);
    return out;
}

}  // namespace gb::probe
