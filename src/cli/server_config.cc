// SPDX-License-Identifier: Apache-2.0
#include "cli/server_config.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <variant>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/file.h"
#include "cli/destinations.h"
#include "egress/upstream.h"
#include "net/cidr.h"
#include "net/host_name.h"

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

Setter to_count(std::optional<std::size_t>& out) {
    return [&out](const toml::node& node, const std::string& name) -> Status {
        std::size_t count = 0;
        GB_TRY(to_number(count, 0, 1000)(node, name));
        out = count;
        return {};
    };
}

Setter to_pool(PoolConfig& pool) {
    Setter templates = [&pool](const toml::node& node, const std::string& name) -> Status {
        if (!node.is_table()) return wrong(name, "a table");
        for (auto&& [key, body] : *node.as_table()) {
            PoolConfig::Limits& limits = pool.templates[std::string(key.str())];
            GB_TRY(to_table({{"least", to_count(limits.least)}, {"most", to_count(limits.most)}})(
                body, name + "." + std::string(key.str())));
        }
        return {};
    };
    return to_table({{"least", to_count(pool.standard.least)},
                     {"most", to_count(pool.standard.most)},
                     {"templates", templates}});
}

Setter to_texts(std::vector<std::string>& out) {
    return [&out](const toml::node& node, const std::string& name) -> Status {
        if (!node.is_array()) return wrong(name, "a list of strings");
        for (const toml::node& item : *node.as_array()) {
            auto text = item.value_exact<std::string>();
            if (!text) return wrong(name, "a list of strings");
            out.push_back(*text);
        }
        return {};
    };
}

Setter to_mode(std::optional<EgressMode>& out) {
    return [&out](const toml::node& node, const std::string& name) -> Status {
        const auto text = node.value_exact<std::string>();
        if (text != "open" && text != "closed") return wrong(name, "\"open\" or \"closed\"");
        out = text == "open" ? EgressMode::open : EgressMode::closed;
        return {};
    };
}

Setter to_egress(EgressConfig& egress) {
    return to_table({{"mode", to_mode(egress.mode)},
                     {"closed", to_texts(egress.closed)},
                     {"open", to_texts(egress.open)},
                     {"resolvers", to_texts(egress.resolvers)},
                     {"trusted_ca", to_text(egress.trusted_ca)},
                     {"max_connections", to_number(egress.max_connections, 1, 1'000'000)},
                     {"upload_mbit", to_number(egress.upload_mbit, 0, 1'000'000)},
                     {"download_mbit", to_number(egress.download_mbit, 0, 1'000'000)},
                     {"keep_decisions_days", to_number(egress.keep_decisions_days, 1, 36'500)}});
}

Status check_resolvers(const std::vector<std::string>& resolvers) {
    for (const std::string& text : resolvers)
        if (auto place = egress::parse_endpoint(text); !place)
            return fail(ErrorCode::invalid_argument,
                        fmt::format("'egress.resolvers' holds '{}': {}", text, place.error().message));
    return {};
}

Result<WarmLimits> limits_of(const PoolConfig::Limits& own, const WarmLimits& standard, std::string_view name) {
    WarmLimits out{own.least.value_or(standard.least), own.most.value_or(standard.most)};
    if (out.most > 0 && out.least > out.most)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("'{0}.least' is {1} and '{0}.most' {2}: the least must not be above the most", name,
                                out.least, out.most));
    return out;
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
                         {"templates", to_table({{"prepare_on_demand", to_flag(out.prepare_on_demand)}})},
                         {"tls", to_table({{"listen", to_text(tls.address)},
                                           {"port", to_number(tls.port, 0, 65535)},
                                           {"certificate", to_text(certificate)},
                                           {"key", to_text(key)}})},
                         {"plans", plans},
                         {"pool", to_pool(out.pool)},
                         {"egress", to_egress(out.egress)},
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
    // Whatever the mode will be, a list that cannot be read stops the start.
    if (auto good = network_options(out.egress, EgressMode::closed); !good) return broken(good.error());
    return out;
}

Result<WarmOptions> warm_options(const PoolConfig& config, std::optional<std::size_t> most) {
    constexpr std::size_t kMost = 4;
    WarmOptions out;
    GB_TRY_ASSIGN(out.standard, limits_of(config.standard, {0, most.value_or(kMost)}, "pool"));
    for (const auto& [name, own] : config.templates) {
        GB_TRY_ASSIGN(const WarmLimits limits, limits_of(own, out.standard, "pool.templates." + name));
        out.templates.emplace(name, limits);
    }
    return out;
}

Result<NetworkOptions> network_options(const EgressConfig& config, std::optional<EgressMode> command_line) {
    constexpr std::uint64_t kBytesOfMbit = 1'000'000 / 8;
    const EgressMode mode = command_line.value_or(config.mode.value_or(EgressMode::open));
    if (!config.open.empty() && mode == EgressMode::open && !command_line)
        return fail(
            ErrorCode::invalid_argument,
            "'egress.open' lists what leaves in the mode \"closed\": set 'egress.mode' to it, or remove the "
            "list; as it is everything would be open");
    NetworkOptions out;
    out.ceiling.only_listed = mode == EgressMode::closed;
    GB_TRY(split_destinations(config.closed, "egress.closed", out.ceiling.closed, out.ceiling.closed_names));
    GB_TRY(split_destinations(config.open, "egress.open", out.ceiling.open, out.ceiling.open_names));
    GB_TRY(check_resolvers(config.resolvers));
    out.resolvers = config.resolvers;
    out.trusted = config.trusted_ca;
    out.slot.max_connections = config.max_connections;
    out.slot.upload_bytes_s = config.upload_mbit * kBytesOfMbit;
    out.slot.download_bytes_s = config.download_mbit * kBytesOfMbit;
    out.decisions_days = config.keep_decisions_days;
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
