// SPDX-License-Identifier: Apache-2.0
#include "engine/processor.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"

namespace gb::engine {
namespace {

std::optional<int> number(std::optional<std::string_view> text) {
    int out = 0;
    if (!text) return std::nullopt;
    const auto [end, ec] = std::from_chars(text->data(), text->data() + text->size(), out);
    return ec == std::errc() && end == text->data() + text->size() ? std::optional(out) : std::nullopt;
}

}  // namespace

// "cpu family\t: 26" of the first processor.
std::optional<std::string_view> cpuinfo_field(std::string_view text, std::string_view name) {
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        if (line.empty()) break;  // the end of the first processor
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) continue;
        std::string_view key = line.substr(0, colon), value = line.substr(colon + 1);
        while (!key.empty() && (key.back() == '\t' || key.back() == ' ')) key.remove_suffix(1);
        while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
        if (key == name) return value;
    }
    return std::nullopt;
}

Result<Processor> parse_cpuinfo(std::string_view text) {
    const auto vendor = cpuinfo_field(text, "vendor_id"), name = cpuinfo_field(text, "model name"),
               flags = cpuinfo_field(text, "flags");
    const auto family = number(cpuinfo_field(text, "cpu family")), model = number(cpuinfo_field(text, "model"));
    if (!vendor || !name || !flags || !family || !model)
        return fail(ErrorCode::data_loss, "/proc/cpuinfo does not say what the processor is");
    Processor out{std::string(*vendor), *family, *model, std::string(*name), {}};
    for (std::string_view rest = *flags; !rest.empty();) {
        const std::string_view word = rest.substr(0, rest.find(' '));
        if (!word.empty()) out.flags.emplace_back(word);
        rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    }
    std::ranges::sort(out.flags);
    const auto twice = std::ranges::unique(out.flags);
    out.flags.erase(twice.begin(), twice.end());
    return out;
}

Result<Processor> this_processor() {
    GB_TRY_ASSIGN(const std::string text, read_file("/proc/cpuinfo"));
    return parse_cpuinfo(text);
}

std::string processor_difference(const Processor& wanted, const Processor& here) {
    if (wanted.vendor != here.vendor || wanted.family != here.family || wanted.model != here.model)
        return fmt::format(
            "it was captured on '{}' ({}, family {}, model {}), and this is '{}' ({}, family {}, model {})",
            wanted.name, wanted.vendor, wanted.family, wanted.model, here.name, here.vendor, here.family,
            here.model);
    std::vector<std::string> missing;
    std::ranges::set_difference(wanted.flags, here.flags, std::back_inserter(missing));
    if (missing.empty()) return {};
    return fmt::format("it was captured on a processor that can do what this one cannot: {}",
                       fmt::join(missing, " "));
}

}  // namespace gb::engine
