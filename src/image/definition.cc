// SPDX-License-Identifier: Apache-2.0
#include "image/definition.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/file.h"

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace gb::image {
namespace fs = std::filesystem;
namespace {

constexpr int kMaxDepth = 8;  // of `extends`
constexpr std::int64_t kMostSeconds = 7 * 24 * 3600;

bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Debian policy 5.6.1.
bool valid_package(std::string_view s) {
    return s.size() >= 2 && (is_lower(s[0]) || is_digit(s[0])) && std::ranges::all_of(s, [](char c) {
               return is_lower(c) || is_digit(c) || c == '+' || c == '-' || c == '.';
           });
}

bool valid_user(std::string_view s) {
    return !s.empty() && s.size() <= 32 && (is_lower(s[0]) || s[0] == '_') &&
           std::ranges::all_of(s, [](char c) { return is_lower(c) || is_digit(c) || c == '_' || c == '-'; });
}

bool valid_env_name(std::string_view s) {
    auto letter = [](char c) { return is_lower(c) || (c >= 'A' && c <= 'Z') || c == '_'; };
    return !s.empty() && letter(s[0]) &&
           std::ranges::all_of(s, [&](char c) { return letter(c) || is_digit(c); });
}

// Reads fields one by one and remembers which were asked for, so that what is left over is a spelling
// mistake.
class Fields {
  public:
    Fields(fs::path file, const toml::table& table) : file_(std::move(file)), table_(table) {}

    [[nodiscard]] std::unexpected<Error> bad(std::string_view key, std::string_view what) const {
        const toml::node* node = table_.get(key);
        return bad_at(node != nullptr ? node->source().begin.line : 0, key, what);
    }

    [[nodiscard]] std::unexpected<Error> bad_at(unsigned line, std::string_view key,
                                                std::string_view what) const {
        std::string where = line > 0 ? fmt::format("{}:{}", file_.string(), line) : file_.string();
        return fail(ErrorCode::invalid_argument, fmt::format("{}: field '{}' {}", where, key, what));
    }

    Status text(std::string_view key, std::string& out) {
        const toml::node* node = take(key);
        if (node == nullptr) return {};
        auto value = node->value_exact<std::string>();
        if (!value) return bad(key, "must be a string");
        if (value->find('\0') != std::string::npos) return bad(key, "must not contain a zero byte");
        out = *value;
        return {};
    }

    Status number(std::string_view key, int least, int most, int& out) {
        const toml::node* node = take(key);
        if (node == nullptr) return {};
        auto value = node->value_exact<std::int64_t>();
        if (!value || *value < least || *value > most)
            return bad(key, fmt::format("must be a whole number from {} to {}", least, most));
        out = static_cast<int>(*value);
        return {};
    }

    Status duration(std::string_view key, std::chrono::milliseconds& out) {
        const toml::node* node = take(key);
        if (node == nullptr) return {};
        std::optional<std::int64_t> ms;
        if (auto text = node->value_exact<std::string>()) ms = parse_duration(*text);
        if (auto seconds = node->value_exact<std::int64_t>(); seconds && *seconds > 0 && *seconds <= kMostSeconds)
            ms = *seconds * 1000;
        if (!ms || *ms > kMostSeconds * 1000)
            return bad(key, "must be a time like \"90s\", \"10m\" or \"2h\", or a number of seconds, of a week at most");
        out = std::chrono::milliseconds(*ms);
        return {};
    }

    Status packages(std::string_view key, std::vector<std::string>& out) {
        const toml::node* node = take(key);
        if (node == nullptr) return {};
        const toml::array* array = node->as_array();
        if (array == nullptr) return bad(key, "must be a list of package names");
        for (const toml::node& item : *array) {
            auto value = item.value_exact<std::string>();
            unsigned line = item.source().begin.line;
            if (!value) return bad_at(line, key, "must be a list of package names");
            if (!valid_package(*value))
                return bad_at(line, key,
                              fmt::format("has '{}', which is not the name of a Debian package", *value));
            out.push_back(*value);
        }
        return {};
    }

    Status env(std::string_view key, std::map<std::string, std::string>& out) {
        const toml::node* node = take(key);
        if (node == nullptr) return {};
        const toml::table* table = node->as_table();
        if (table == nullptr) return bad(key, "must be a table of NAME = \"value\"");
        for (const auto& [name, item] : *table) {
            auto value = item.value_exact<std::string>();
            std::string path = fmt::format("{}.{}", key, name.str());
            unsigned line = item.source().begin.line;
            if (!valid_env_name(name.str())) return bad_at(line, path, "is not a valid name of a variable");
            if (!value || value->find('\0') != std::string::npos)
                return bad_at(line, path, "must be a string");
            out[std::string(name.str())] = *value;
        }
        return {};
    }

    [[nodiscard]] Status nothing_left() const {
        for (const auto& [name, item] : table_)
            if (!taken_.contains(name.str())) return bad(name.str(), "is not known");
        return {};
    }

  private:
    const toml::node* take(std::string_view key) {
        taken_.emplace(key);
        return table_.get(key);
    }

    fs::path file_;
    const toml::table& table_;
    std::set<std::string, std::less<>> taken_;
};

Result<TemplateDefinition> load(const fs::path& images, std::string_view name, int depth) {
    if (!is_definition_name(name))
        return fail(ErrorCode::invalid_argument,
                    fmt::format("'{}' is not a valid template name: use a-z, 0-9 and -, at most 63", name));
    const fs::path folder = images / name;
    const fs::path file = folder / "template.toml";
    auto source = read_file(file);
    if (!source) return std::unexpected(source.error().with(fmt::format("template '{}'", name)));
    toml::parse_result parsed = toml::parse(*source, file.string());
    if (!parsed)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("{}:{}: {}", file.string(), parsed.error().source().begin.line,
                                parsed.error().description()));
    Fields fields(file, parsed.table());

    std::string extends;
    GB_TRY(fields.text("extends", extends));
    TemplateDefinition out;
    if (!extends.empty()) {
        if (depth >= kMaxDepth) return fields.bad("extends", "goes round in a circle or is nested too deep");
        auto parent = load(images, extends, depth + 1);
        if (!parent) {
            if (parent.error().code == ErrorCode::not_found)
                return fields.bad("extends",
                                  fmt::format("names '{}', which does not exist beside it", extends));
            return parent;
        }
        out = *std::move(parent);
        out.description.clear();
    }

    GB_TRY(fields.text("name", out.name));
    if (out.name != name) return fields.bad("name", fmt::format("must be '{}', like its folder", name));
    GB_TRY(fields.text("description", out.description));
    GB_TRY(fields.number("cpu_count", 1, 64, out.cpu_count));
    GB_TRY(fields.number("memory_mib", 128, 1 << 20, out.memory_mib));
    GB_TRY(fields.number("disk_mib", 512, 1 << 24, out.disk_mib));
    GB_TRY(fields.text("start_cmd", out.start_cmd));
    GB_TRY(fields.text("ready_cmd", out.ready_cmd));
    GB_TRY(fields.duration("ready_timeout", out.ready_timeout));
    GB_TRY(fields.text("default_user", out.default_user));
    if (!valid_user(out.default_user)) return fields.bad("default_user", "is not a valid name of a user");
    GB_TRY(fields.text("workdir", out.workdir));
    if (!out.workdir.starts_with('/')) return fields.bad("workdir", "must be an absolute path");
    GB_TRY(fields.packages("packages", out.packages));
    std::ranges::sort(out.packages);
    auto repeated = std::ranges::unique(out.packages);
    out.packages.erase(repeated.begin(), repeated.end());
    GB_TRY(fields.env("env", out.env));
    GB_TRY(fields.nothing_left());

    Layer layer{.name = out.name};
    std::error_code ec;
    if (fs::is_regular_file(folder / "setup", ec)) layer.setup = folder / "setup";
    if (fs::is_directory(folder / "files", ec)) layer.files = folder / "files";
    if (fs::is_directory(folder / "npm", ec)) {
        for (std::string_view needed : {"package.json", "package-lock.json"})
            if (!fs::is_regular_file(folder / "npm" / needed, ec))
                return fail(ErrorCode::invalid_argument,
                            fmt::format("{}: {} is missing; versions of npm packages must be locked",
                                        (folder / "npm").string(), needed));
        layer.npm = folder / "npm";
    }
    out.layers.push_back(std::move(layer));
    return out;
}

}  // namespace

bool is_definition_name(std::string_view s) {
    return !s.empty() && s.size() <= 63 && (is_lower(s[0]) || is_digit(s[0])) &&
           std::ranges::all_of(s, [](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
}

Result<TemplateDefinition> load_definition(const fs::path& images, std::string_view name) {
    return load(images, name, 0);
}

Result<std::vector<std::string>> list_definitions(const fs::path& images) {
    std::vector<std::string> out;
    std::error_code ec;
    fs::directory_iterator it(images, ec);
    if (ec) return fail_errno(ec.value(), fmt::format("list {}", images.string()));
    for (const fs::directory_entry& entry : it)
        if (fs::is_regular_file(entry.path() / "template.toml", ec)) out.push_back(entry.path().filename());
    std::ranges::sort(out);
    return out;
}

}  // namespace gb::image
