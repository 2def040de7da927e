// SPDX-License-Identifier: Apache-2.0
#include "net/cidr.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <arpa/inet.h>

#include <fmt/format.h>

namespace gb::net {
namespace {

constexpr std::uint32_t mask(int length) {
    return length == 0 ? 0 : ~std::uint32_t{0} << (32 - length);
}

// A length without sign, blanks or leading zeros.
std::optional<int> parse_length(std::string_view text, int most) {
    if (text.empty() || text.size() > 3 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
    int value = 0;
    for (char c : text) {
        if (c < '0' || c > '9') return std::nullopt;
        value = value * 10 + (c - '0');
    }
    return value <= most ? std::optional(value) : std::nullopt;
}

std::optional<std::array<std::uint8_t, 16>> ipv6_bytes(std::string_view text) {
    if (text.size() > 45 || text.find('\0') != std::string_view::npos) return std::nullopt;
    std::array<std::uint8_t, 16> out{};
    if (::inet_pton(AF_INET6, std::string(text).c_str(), out.data()) != 1) return std::nullopt;
    return out;
}

}  // namespace

std::optional<Ipv4> parse_ipv4(std::string_view text) {
    std::uint32_t value = 0;
    for (int part = 0; part < 4; ++part) {
        std::size_t end = part < 3 ? text.find('.') : text.size();
        if (end == std::string_view::npos) return std::nullopt;
        auto number = parse_length(text.substr(0, end), 255);
        if (!number) return std::nullopt;
        value = value << 8 | static_cast<std::uint32_t>(*number);
        text.remove_prefix(std::min(text.size(), end + 1));
    }
    return Ipv4{value};
}

std::string to_string(Ipv4 address) {
    std::uint32_t v = address.value;
    return fmt::format("{}.{}.{}.{}", v >> 24, v >> 16 & 255, v >> 8 & 255, v & 255);
}

Cidr Cidr::of(Ipv4 address, int length) {
    return {.base = {address.value & mask(length)}, .length = length};
}

Ipv4 Cidr::last() const {
    return {base.value | ~mask(length)};
}

std::string to_string(const Cidr& cidr) {
    return cidr.length == 32 ? to_string(cidr.base) : fmt::format("{}/{}", to_string(cidr.base), cidr.length);
}

std::optional<std::variant<Cidr, Ipv6Block>> parse_cidr(std::string_view text) {
    std::size_t slash = text.find('/');
    std::string_view address = text.substr(0, slash);
    auto length_of = [&](int most) -> std::optional<int> {
        return slash == std::string_view::npos ? most : parse_length(text.substr(slash + 1), most);
    };
    if (auto v4 = parse_ipv4(address)) {
        auto length = length_of(32);
        if (!length) return std::nullopt;
        return Cidr::of(*v4, *length);
    }
    auto v6 = ipv6_bytes(address);
    auto length = length_of(128);
    if (!v6 || !length) return std::nullopt;
    constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (*length >= 96 && std::memcmp(v6->data(), kMapped.data(), kMapped.size()) == 0) {
        std::uint32_t value = 0;
        for (std::size_t i = 12; i < 16; ++i) value = value << 8 | (*v6)[i];
        return Cidr::of({value}, *length - 96);
    }
    return Ipv6Block{};
}

std::vector<Range> merge(std::span<const Cidr> blocks) {
    std::vector<Range> ranges;
    for (const Cidr& block : blocks) ranges.push_back({block.first(), block.last()});
    std::ranges::sort(ranges, {}, &Range::first);
    std::vector<Range> out;
    for (const Range& range : ranges) {
        bool joins = !out.empty() &&
                     (out.back().last.value == UINT32_MAX || range.first.value <= out.back().last.value + 1);
        if (joins)
            out.back().last = std::max(out.back().last, range.last);
        else
            out.push_back(range);
    }
    return out;
}

}  // namespace gb::net
