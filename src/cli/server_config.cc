#include "cli/server_config.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/file.h"

namespace gb::cli {
namespace {

namespace fs = std::filesystem;
constexpr const char* kDefaultPath = "/etc/glovebox/config.toml";

std::unexpected<Error> wrong(std::string_view name, std::string_view wanted) {
    return fail(ErrorCode::invalid_argument, fmt::format("'{}' must be {}", name, wanted));
}

using Setter = std::function<Status(const toml::node&, const std::string& name)>;
using Settings = std::map<std::string, Setter, std::less<>>;

Setter to_text(std::string& out) {
    return [&out](const toml::node& node, const std::string& name) -> Status {
        auto text = node.value_exact<std::string>();
        if (!text) return wrong(name, "a string");
        out = *text;
        return {};
    };
}

Setter to_flag(bool& out) {
    return [&out](const toml::node& node, const std::string& name) -> Status {
        auto flag = node.value_exact<bool>();
        if (!flag) return wrong(name, "true or false");
        out = *flag;
        return {};
    };
}

template <class T>
Setter to_number(T& out, std::int64_t least, std::int64_t most) {
    return [&out, least, most](const toml::node& node, const std::string& name) -> Status {
        auto number = node.value_exact<std::int64_t>();
        if (!number || *number < least || *number > most)
            return wrong(name, fmt::format("a whole number from {} to {}", least, most));
        out = static_cast<T>(*number);
        return {};
    };
}

Setter to_rate(double& out) {
    return [&out](const toml::node& node, const std::string& name) -> Status {
        auto number = node.value<double>();
        if (!number || !std::isfinite(*number) || *number <= 0 || *number > 1e6 || node.is_boolean())
            return wrong(name, "a number above 0 and up to 1000000");
        out = *number;
        return {};
    };
}

// Days, with fractions, to milliseconds.
Setter to_days(std::int64_t& out_ms) {
    return [&out_ms](const toml::node& node, const std::string& name) -> Status {
        auto number = node.value<double>();
        if (!number || !std::isfinite(*number) || *number < 0 || *number > 36'500 || node.is_boolean())
            return wrong(name, "a number of days from 0 to 36500");
        out_ms = std::llround(*number * 24 * 3'600'000);
        // What is not nothing must not become it: 0 is for ever.
        if (*number > 0) out_ms = std::max<std::int64_t>(out_ms, 1);
        return {};
    };
}

// Dollars, exact to a billionth: 0.000014, as a number or a string.
Setter to_nano(std::int64_t& out) {
    return [&out](const toml::node& node, const std::string& name) -> Status {
        auto number = node.value<double>();
        if (!number || !std::isfinite(*number) || *number < 0 || *number > 1000 || node.is_boolean())
            return wrong(name, "a price in dollars from 0 to 1000");
        out = std::llround(*number * 1e9);
        return {};
    };
}

Status apply(const toml::table& table, const std::string& prefix, const Settings& settings) {
    for (auto&& [key, node] : table) {
        const std::string name = prefix + std::string(key.str());
        auto found = settings.find(key.str());
        if (found == settings.end()) {
            std::string known;
            for (const auto& [other, setter] : settings) known += (known.empty() ? "" : ", ") + prefix + other;
            return fail(ErrorCode::invalid_argument, fmt::format("'{}' is no setting; there are {}", name, known));
        }
        GB_TRY(found->second(node, name));
    }
    return {};
}

Setter to_table(Settings settings) {
    return [settings = std::move(settings)](const toml::node& node, const std::string& name) -> Status {
        if (!node.is_table()) return wrong(name, "a table");
        return apply(*node.as_table(), name + ".", settings);
    };
}

Status apply_plan(const toml::table& table, const std::string& name, Plans& plans) {
    Plan plan;
    const std::string key = name.substr(name.find('.') + 1);
    if (const Plan* known = plans.find(key)) plan = *known;
    plan.name = key;
    GB_TRY(apply(table, name + ".",
                 {{"max_sandboxes", to_number(plan.max_sandboxes, 0, 100'000)},
                  {"max_lifetime_s", to_number(plan.max_lifetime_s, 1, 365LL * 24 * 3600)},
                  {"creates_per_second", to_rate(plan.creates_per_second)},
                  {"requests_per_second", to_rate(plan.requests_per_second)},
                  {"max_cpu_count", to_number(plan.max_cpu_count, 1, 1024)},
                  {"max_memory_mib", to_number(plan.max_memory_mib, 128, 16'777'216)},
                  {"max_disk_mib", to_number(plan.max_disk_mib, 1, 1'073'741'824)}}));
    plans.set(std::move(plan));
    return {};
}

Status check(const ServerConfig& config, bool has_tls) {
    if (has_tls && config.domain.empty())
        return fail(ErrorCode::invalid_argument,
                    "'tls' needs 'domain': the name under which sandboxes have host names");
    if (has_tls && (config.tls->certificate.empty() || config.tls->key.empty()))
        return fail(ErrorCode::invalid_argument, "'tls' needs 'tls.certificate' and 'tls.key': paths of PEM files");
    if (config.domain.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") != std::string::npos ||
        config.domain.starts_with('.') || config.domain.ends_with('.') || config.domain.size() > 200)
        return wrong("domain", "a host name in lower case, such as sandboxes.example.com");
    return {};
}

}  // namespace

Result<ServerConfig> parse_server_config(std::string_view text, std::string_view name) {
    auto broken = [&](const Error& error) { return std::unexpected(error.with(name)); };
    toml::table table;
    try {
        table = toml::parse(text);
    } catch (const toml::parse_error& e) {
        return fail(ErrorCode::invalid_argument,
                    fmt::format("{}: line {}: {}", name, e.source().begin.line, e.description()));
    }
    ServerConfig out;
    std::string address, certificate, key;
    std::uint16_t port = 0;
    TlsConfig tls;
    Setter plans = [&](const toml::node& node, const std::string& setting) -> Status {
        if (!node.is_table()) return wrong(setting, "a table");
        for (auto&& [plan, body] : *node.as_table()) {
            const std::string plan_name = setting + "." + std::string(plan.str());
            if (!body.is_table()) return wrong(plan_name, "a table");
            GB_TRY(apply_plan(*body.as_table(), plan_name, out.plans));
        }
        return {};
    };
    Status done = apply(table, "",
                        {{"listen", to_text(address)},
                         {"port", to_number(port, 0, 65535)},
                         {"domain", to_text(out.domain)},
                         {"retention_days", to_number(out.retention_days, 1, 3650)},
                         {"retention", to_table({{"paused_days", to_days(out.retention.paused_ms)},
                                                 {"snapshots_days", to_days(out.retention.snapshots_ms)},
                                                 {"warn_days", to_days(out.retention.warn_ms)}})},
                         {"tls", to_table({{"listen", to_text(tls.address)},
                                           {"port", to_number(tls.port, 0, 65535)},
                                           {"certificate", to_text(certificate)},
                                           {"key", to_text(key)}})},
                         {"plans", plans},
                         {"prices", to_table({{"vcpu_second", to_nano(out.prices.vcpu_second_nano)},
                                              {"gib_second", to_nano(out.prices.gib_second_nano)}})},
                         {"webhooks", to_table({{"allow_private", to_flag(out.webhooks_to_private)}})}});
    if (!done) return broken(done.error());
    if (table.contains("listen")) out.address = address;
    if (table.contains("port")) out.port = port;
    if (table.contains("tls")) {
        tls.certificate = certificate;
        tls.key = key;
        out.tls = tls;
    }
    if (Status good = check(out, out.tls.has_value()); !good) return broken(good.error());
    return out;
}

Result<ServerConfig> load_server_config(const fs::path& path) {
    const fs::path file = path.empty() ? fs::path(kDefaultPath) : path;
    auto text = read_file(file);
    if (!text && text.error().code == ErrorCode::not_found && path.empty()) return ServerConfig{};
    if (!text) return std::unexpected(text.error());
    return parse_server_config(*text, file.string());
}

}  // namespace gb::cli
