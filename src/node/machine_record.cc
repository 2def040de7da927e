// SPDX-License-Identifier: Apache-2.0
#include "node/machine_record.h"

#include <algorithm>

#include <boost/json.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"

namespace gb {
namespace fs = std::filesystem;
namespace json = boost::json;
namespace {

constexpr int kRecordFormat = 1;

std::unexpected<Error> unreadable_record(std::string_view why) {
    return fail(ErrorCode::data_loss, fmt::format("the record of the machine {}", why));
}

json::array list_of(const std::vector<std::string>& lines) {
    return json::array(lines.begin(), lines.end());
}

Result<std::vector<std::string>> strings_of(const json::value& value) {
    std::vector<std::string> out;
    if (!value.is_array()) return unreadable_record("has a list that is none");
    for (const json::value& item : value.get_array()) {
        if (!item.is_string()) return unreadable_record("has a list with something else than text");
        out.emplace_back(item.get_string());
    }
    return out;
}

Result<std::map<std::string, std::vector<net::HeaderRule>>> rules_of(const json::value& value) {
    std::map<std::string, std::vector<net::HeaderRule>> out;
    if (!value.is_object()) return unreadable_record("has header rules that are none");
    for (const auto& host : value.get_object()) {
        GB_TRY_ASSIGN(const std::vector<std::string> words, strings_of(host.value()));
        if (words.size() % 2 != 0) return unreadable_record("has a header rule without a value");
        std::vector<net::HeaderRule>& rules = out[host.key()];
        for (std::size_t at = 0; at < words.size(); at += 2) rules.push_back({words[at], words[at + 1]});
    }
    return out;
}

// The password is not written down here: until somebody who knows it says so again, the proxy refuses, and
// nothing leaves.
Result<net::ProxyRequest> proxy_of(const json::value& value) {
    GB_TRY_ASSIGN(std::vector<std::string> words, strings_of(value));
    if (words.size() != 2) return unreadable_record("has an egress proxy that is none");
    return net::ProxyRequest{std::move(words[0]), std::move(words[1]), ""};
}

Result<NetworkRequest> network_of(const json::object& object) {
    NetworkRequest out;
    bool allow = false, deny = false, internet = false;
    for (const auto& item : object) {
        if (item.key() == "allow_out") {
            GB_TRY_ASSIGN(out.allow_out, strings_of(item.value()));
            allow = true;
        } else if (item.key() == "deny_out") {
            GB_TRY_ASSIGN(out.deny_out, strings_of(item.value()));
            deny = true;
        } else if (item.key() == "allow_internet_access") {
            if (item.value().is_bool()) {
                out.allow_internet_access = item.value().get_bool();
            } else if (!item.value().is_null()) {
                return unreadable_record("does not say whether there is internet access");
            }
            internet = true;
        } else if (item.key() == "rules") {
            GB_TRY_ASSIGN(out.rules, rules_of(item.value()));
        } else if (item.key() == "egress_proxy") {
            GB_TRY_ASSIGN(out.egress_proxy, proxy_of(item.value()));
        } else {
            // Of a later version: a rule that is not understood cannot be kept.
            return unreadable_record(fmt::format("has a network rule '{}'", std::string_view(item.key())));
        }
    }
    if (!allow || !deny || !internet) return unreadable_record("lacks network rules");
    return out;
}

// As Cgroup::create takes them: the name becomes a path.
bool is_group_name(std::string_view name) {
    return !name.empty() && name.size() <= 64 && name[0] != '.' && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
               c == '_' || c == '-';
    });
}

}  // namespace

std::string write_record(const MachineRecord& r) {
    json::object network{{"allow_out", list_of(r.network.allow_out)},
                         {"deny_out", list_of(r.network.deny_out)}};
    network["allow_internet_access"] =
        r.network.allow_internet_access ? json::value(*r.network.allow_internet_access) : json::value();
    if (!r.network.rules.empty()) {
        json::object rules;
        for (const auto& [host, headers] : r.network.rules) {
            json::array words;
            for (const net::HeaderRule& header : headers) {
                words.emplace_back(header.name);
                words.emplace_back(header.value);
            }
            rules[host] = std::move(words);
        }
        network["rules"] = std::move(rules);
    }
    if (r.network.egress_proxy)
        network["egress_proxy"] =
            json::array{r.network.egress_proxy->address, r.network.egress_proxy->username};
    json::object out{{"format", kRecordFormat},
                     {"id", r.id},
                     {"pid", r.process.pid},
                     {"start_ticks", static_cast<std::int64_t>(r.process.start_ticks)},
                     {"slot", static_cast<std::int64_t>(r.slot)},
                     {"netns", static_cast<std::int64_t>(r.netns)},
                     {"network", std::move(network)},
                     {"template", json::parse(write_manifest(r.from))}};
    if (!r.cgroup.empty()) out["cgroup"] = r.cgroup;
    return json::serialize(out) + "\n";
}

Result<MachineRecord> parse_record(std::string_view text) {
    boost::system::error_code ec;
    const json::value value = json::parse(json::string_view(text.data(), text.size()), ec);
    if (ec || !value.is_object()) return unreadable_record("is not a JSON object");
    const json::object& object = value.get_object();
    const json::value* format = object.if_contains("format");
    if (format == nullptr || !format->is_int64()) return unreadable_record("has no version");
    if (format->get_int64() != kRecordFormat)
        return fail(
            ErrorCode::failed_precondition,
            fmt::format("the machine is one of another version of this server (format {}, this one reads {})",
                        format->get_int64(), kRecordFormat));
    std::string missing;
    auto number = [&](const char* name) -> std::int64_t {
        const json::value* found = object.if_contains(name);
        if (found != nullptr && found->is_int64() && found->get_int64() >= 0) return found->get_int64();
        missing = name;
        return 0;
    };
    MachineRecord out;
    const std::int64_t pid = number("pid");
    out.process.pid = static_cast<pid_t>(pid);
    if (out.process.pid != pid) return unreadable_record("names no process");
    out.process.start_ticks = static_cast<std::uint64_t>(number("start_ticks"));
    out.slot = static_cast<std::size_t>(number("slot"));
    out.netns = static_cast<std::uint64_t>(number("netns"));
    const json::value* id = object.if_contains("id");
    if (id != nullptr && id->is_string()) {
        out.id = id->get_string();
    } else {
        missing = "id";
    }
    if (!missing.empty()) return unreadable_record(fmt::format("lacks '{}'", missing));
    if (const json::value* cgroup = object.if_contains("cgroup")) {
        if (!cgroup->is_string() || !is_group_name(cgroup->get_string()))
            return unreadable_record("names no control group");
        out.cgroup = cgroup->get_string();
    }
    const json::value* network = object.if_contains("network");
    if (network == nullptr || !network->is_object()) return unreadable_record("lacks 'network'");
    GB_TRY_ASSIGN(out.network, network_of(network->get_object()));
    const json::value* from = object.if_contains("template");
    if (from == nullptr) return unreadable_record("lacks 'template'");
    GB_TRY_ASSIGN(out.from, parse_manifest(json::serialize(*from)));
    return out;
}

Status put_record(const fs::path& file, const MachineRecord& record) {
    fs::path temporary = file;
    temporary += ".new";
    {
        GB_TRY_ASSIGN(UniqueFd fd, open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
        GB_TRY(write_all(fd.get(), write_record(record)));
    }
    if (::rename(temporary.c_str(), file.c_str()) != 0)
        return fail_errno(fmt::format("rename to {}", file.string()));
    return {};
}

Status remove_record(const fs::path& file) {
    if (::unlink(file.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return {};
    return fail_errno(fmt::format("remove {}", file.string()));
}

}  // namespace gb
