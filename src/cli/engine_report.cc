// SPDX-License-Identifier: Apache-2.0
#include "cli/engine_report.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <fmt/format.h>

#include "engine/processor.h"

namespace gb::cli {
namespace json = boost::json;
namespace {

constexpr std::size_t kMostError = 300;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_hex(char c) {
    return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}
bool is_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}
// What a word of interest is made of: a path, an address, a name, a URL.
bool is_word(char c) {
    return is_name(c) || std::string_view("./:@%?&=+~[]").find(c) != std::string_view::npos;
}

bool is_ipv4(std::string_view word) {
    word = word.substr(0, word.find_first_of(":/"));
    return std::ranges::count(word, '.') == 3 && std::ranges::all_of(word, [](char c) { return is_digit(c) || c == '.'; });
}

// IPv6 addresses and those of network devices.
bool is_hex_groups(std::string_view word) {
    return std::ranges::count(word, ':') >= 2 && std::ranges::all_of(word, [](char c) {
               return is_hex(c) || std::string_view(":.[]/%").find(c) != std::string_view::npos;
           });
}

// "mirror.example.org:80", but no "bios-microvm.bin" and no "7.2.22".
bool is_domain(std::string_view word) {
    static constexpr std::array<std::string_view, 11> kFiles{"bin", "rom", "img",  "so",  "ko",  "qcow2",
                                                             "json", "deb", "state", "delta", "tmp"};
    word = word.substr(0, word.find(':'));
    const std::size_t dot = word.rfind('.');
    if (dot == std::string_view::npos || dot == 0 || word.size() - dot < 3) return false;
    const std::string_view last = word.substr(dot + 1);
    return std::ranges::all_of(word, [](char c) { return is_name(c) || c == '.'; }) &&
           std::ranges::all_of(last, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }) &&
           std::ranges::find(kFiles, last) == kFiles.end();
}

std::string publishable_word(std::string_view word) {
    if (word.find("://") != std::string_view::npos) return "<url>";
    if (word.find('@') != std::string_view::npos || is_ipv4(word) || is_hex_groups(word)) return "<address>";
    if (word.starts_with('/')) {
        for (std::string_view known : {"/dev/", "/proc/", "/sys/", "/usr/", "/lib", "/vm/"})
            if (word.starts_with(known)) return std::string(word);
        return "<path>";
    }
    return is_domain(word) ? "<name>" : std::string(word);
}

// As a word of its own: a host named "vm" is no part of "kvm".
void hide(std::string& text, std::string_view what) {
    constexpr std::string_view kBy = "<hidden>";
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos;) {
        const std::size_t end = at + what.size();
        const bool inside = (at > 0 && is_name(text[at - 1])) || (end < text.size() && is_name(text[end]));
        if (!inside) text.replace(at, what.size(), kBy);
        at = inside ? end : at + kBy.size();
    }
}

std::string_view field_of(std::string_view cpuinfo, std::string_view name) {
    return engine::cpuinfo_field(cpuinfo, name).value_or(std::string_view());
}

const char* outcome_name(TrialStep::Outcome outcome) {
    switch (outcome) {
        case TrialStep::Outcome::passed:
            return "ok";
        case TrialStep::Outcome::failed:
            return "FAILED";
        case TrialStep::Outcome::not_tried:
            break;
    }
    return "not tried";
}

using Line = std::pair<const char*, std::string>;
std::vector<Line> facts(const EngineHost& host, const EngineTrial& trial, std::span<const std::string> secret) {
    const std::string accelerator =
        trial.accelerator.reason.empty()
            ? std::string()
            : fmt::format("{}: {}", engine::accelerator_name(trial.accelerator.accelerator),
                          publishable(trial.accelerator.reason, secret));
    std::vector<Line> out{{"glovebox", host.version},     {"distribution", host.distribution}, {"kernel", host.kernel},
                          {"processor", host.processor},  {"memory", host.memory},             {"kvm", publishable(host.kvm, secret)},
                          {"virtualised", host.virtualised}, {"cgroups", host.cgroups},           {"qemu", trial.vmm_version},
                          {"guest kernel", trial.guest_kernel}, {"accelerator", accelerator}};
    for (auto& [name, text] : out)
        if (text.empty()) text = "unknown";
    return out;
}

}  // namespace

std::string publishable(std::string_view error, std::span<const std::string> secret) {
    std::string text(error);
    for (const std::string& word : secret)
        if (!word.empty()) hide(text, word);
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        if (!is_word(text[at])) {
            const bool blank = static_cast<unsigned char>(text[at]) <= ' ';
            if (!blank || (!out.empty() && out.back() != ' ')) out += blank ? ' ' : text[at];
            ++at;
            continue;
        }
        std::size_t end = at;
        while (end < text.size() && is_word(text[end])) ++end;
        std::string_view word = std::string_view(text).substr(at, end - at);
        const std::size_t last = word.find_last_not_of(".:?");  // what ends a sentence
        const std::string_view tail = word.substr(last == std::string_view::npos ? 0 : last + 1);
        out += publishable_word(word.substr(0, word.size() - tail.size()));
        out += tail;
        at = end;
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    if (out.size() > kMostError) out = out.substr(0, kMostError) + "…";
    return out;
}

std::string engine_report(const EngineHost& host, const EngineTrial& trial, std::span<const std::string> secret) {
    std::string out = "--- glovebox engine report ---\n";
    for (const auto& [name, text] : facts(host, trial, secret)) out += fmt::format("{:<13} {}\n", name, text);
    for (const TrialStep& step : trial.steps) {
        const bool tried = step.outcome != TrialStep::Outcome::not_tried;
        out += fmt::format("{:<13} {}{}{}\n", step.name, outcome_name(step.outcome),
                           tried ? fmt::format(", {} ms", step.ms) : "",
                           step.detail.empty() ? "" : ", " + step.detail);
        if (!step.error.empty()) out += fmt::format("{:<13} {}\n", "", publishable(step.error, secret));
    }
    out += fmt::format("{:<13} {}\n--- end ---\n", "result", trial.passed() ? "passed" : "FAILED");
    return out;
}

json::object engine_report_json(const EngineHost& host, const EngineTrial& trial, std::span<const std::string> secret) {
    json::object out;
    for (const auto& [name, text] : facts(host, trial, secret)) out[name] = text;
    json::array steps;
    for (const TrialStep& step : trial.steps) {
        json::object one{{"name", step.name}, {"outcome", outcome_name(step.outcome)}};
        if (step.outcome != TrialStep::Outcome::not_tried) one["ms"] = step.ms;
        if (!step.detail.empty()) one["detail"] = step.detail;
        if (!step.error.empty()) one["error"] = publishable(step.error, secret);
        steps.push_back(std::move(one));
    }
    out["steps"] = std::move(steps);
    out["passed"] = trial.passed();
    return out;
}

std::string processor_of(std::string_view cpuinfo) {
    const std::string_view name = field_of(cpuinfo, "model name");
    if (name.empty()) return {};
    std::size_t count = 0;
    for (std::size_t at = 0; (at = cpuinfo.find("processor\t", at)) != std::string_view::npos; ++at)
        count += at == 0 || cpuinfo[at - 1] == '\n' ? 1U : 0U;
    return fmt::format("{} (family {}, model {}, stepping {}), {} processor{}", name, field_of(cpuinfo, "cpu family"),
                       field_of(cpuinfo, "model"), field_of(cpuinfo, "stepping"), count, count == 1 ? "" : "s");
}

std::string virtualised_of(std::string_view cpuinfo) {
    const std::string_view flags = field_of(cpuinfo, "flags");
    if (flags.empty()) return {};
    const std::string padded = fmt::format(" {} ", flags);
    auto has = [&](std::string_view flag) { return padded.find(fmt::format(" {} ", flag)) != std::string::npos; };
    return fmt::format("{}; its processor offers {}",
                       has("hypervisor") ? "yes, this host is a virtual machine itself" : "no",
                       has("vmx")   ? "vmx"
                       : has("svm") ? "svm"
                                    : "neither vmx nor svm");
}

std::string distribution_of(std::string_view os_release) {
    constexpr std::string_view kName = "PRETTY_NAME=";
    const std::string padded = fmt::format("\n{}", os_release);
    const std::size_t at = padded.find(fmt::format("\n{}", kName));
    if (at == std::string::npos) return {};
    std::string value = padded.substr(at + 1 + kName.size());
    value.resize(std::min(value.find('\n'), value.size()));
    std::erase_if(value, [](char c) { return c == '"' || c == '\''; });
    return value;
}

}  // namespace gb::cli
