// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/runtimes.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

namespace gb::interpreter {
namespace {

constexpr std::string_view kEntropyModule = "glovebox-entropy.node";
constexpr std::string_view kUsualPath = "/usr/local/bin:/usr/bin:/bin";

std::string find_program(std::string_view name) {
    const char* set = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it
    std::string_view path = set != nullptr && *set != '\0' ? std::string_view(set) : kUsualPath;
    while (!path.empty()) {
        const std::size_t end = path.find(':');
        const std::string candidate = fmt::format("{}/{}", path.substr(0, end), name);
        if (::access(candidate.c_str(), X_OK) == 0) return candidate;
        path = end == std::string_view::npos ? std::string_view() : path.substr(end + 1);
    }
    return {};
}

}  // namespace

Runtimes find_runtimes() {
    Runtimes found;
    constexpr const char* kPython = "/usr/bin/python3";
    if (::access(kPython, X_OK) == 0) found.python = kPython;
    found.node = find_program("node");
    std::error_code ignored;
    const auto beside =
        std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / kEntropyModule;
    if (std::filesystem::exists(beside, ignored)) found.node_entropy = beside.string();
    found.bash = find_program("bash");
    found.r = find_program("R");
    found.java = find_program("java");
    found.javac = find_program("javac");
    return found;
}

std::vector<std::string> languages(const Runtimes& runtimes) {
    std::vector<std::string> found;
    if (!runtimes.bash.empty()) found.emplace_back("bash");
    if (!runtimes.java.empty() && !runtimes.javac.empty()) found.emplace_back("java");
    if (!runtimes.node.empty()) found.emplace_back("javascript");
    if (!runtimes.python.empty()) found.emplace_back("python");
    if (!runtimes.r.empty()) found.emplace_back("r");
    if (!runtimes.node.empty()) found.emplace_back("typescript");
    return found;
}

Status require_kernel_for(std::string_view language, const Runtimes& runtimes) {
    const std::vector<std::string> known = languages(runtimes);
    if (std::ranges::find(known, language) != known.end()) return {};
    return fail(ErrorCode::unimplemented,
                fmt::format("No kernel for language '{}' in this sandbox. Available: {}", language,
                            fmt::join(known, ", ")));
}

}  // namespace gb::interpreter
