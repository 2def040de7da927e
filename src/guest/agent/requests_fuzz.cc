// SPDX-License-Identifier: Apache-2.0
// What remains of the pure readers: POST /init, the kernel command line, /proc, /etc/hosts, bundles of certificates.
#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>

#include "guest/agent/init_request.h"
#include "guest/agent/machine.h"
#include "guest/agent/metrics.h"
#include "guest/agent/system_setup.h"
#include "guest/agent/trust_bundle.h"

namespace {

using namespace gb::agent;

void check_hosts(std::string_view hosts, std::string_view name) {
    const std::string once = with_host_line(hosts, name);
    if (with_host_line(once, name) != once) std::abort();
    if (!once.ends_with(fmt::format("127.0.1.1 {} # glovebox\n", name))) std::abort();
    // Another name takes the place of this one.
    if (with_host_line(once, "other") != with_host_line(hosts, "other")) std::abort();
}

void check_bundle(std::string_view bundle, const Authority& authority) {
    const std::string plain = without_authority(bundle, {});
    if (without_authority(plain, {}) != plain) std::abort();
    const std::string with = with_authority(bundle, authority.pem, {});
    if (!with.starts_with(plain) || with.find(authority.pem, plain.size()) == std::string::npos) std::abort();
    if (with_authority(with, authority.pem, {}) != with) std::abort();
    // What it was, with its last line ended.
    const std::string after = without_authority(with, {});
    if (after != plain && after != plain + "\n") std::abort();
    // Nothing is lost but lines of ours and certificates that are known, however it is cut.
    const std::string known = without_authority(bundle, {authority.pem});
    if (known.size() > plain.size()) std::abort();
}

void check_init(std::string_view body) {
    const auto request = parse_init_request(body);
    if (!request) {
        if (request.error().code != gb::ErrorCode::invalid_argument) std::abort();
        return;
    }
    if (request->default_user == "") std::abort();
    if (const auto& folder = request->default_workdir; folder && !folder->empty())
        if (!folder->starts_with('/') || folder->find('\0') != std::string::npos) std::abort();
    if (request->hostname) check_hosts("127.0.0.1 localhost\n", *request->hostname);
    if (request->authority && !request->authority->pem.empty())
        if (const std::string& pem = request->authority->pem; certificate_length(pem) != pem.size()) std::abort();
    Settings settings;
    apply_init_request(*request, settings);
    const Environment env = settings.env;
    apply_init_request(*request, settings);
    if (settings.generation != 2 || settings.env != env || env.at("E2B_SANDBOX") != "true") std::abort();
    // Other programs read it as the same.
    const auto again = parse_init_request(R"({"envVars":)" + environment_json(env) + "}");
    if (!again || again->env != env) std::abort();
}

void check_network(std::string_view line) {
    const auto plan = parse_network_plan(line);
    if (!plan || !*plan) return;
    if ((*plan)->prefix > 32) std::abort();
    const std::string written =
        fmt::format("glovebox.ip={}/{} glovebox.gw={}", (*plan)->address, (*plan)->prefix, (*plan)->gateway);
    const auto again = parse_network_plan(written);
    if (!again || !*again || (*again)->address != (*plan)->address || (*again)->prefix != (*plan)->prefix ||
        (*again)->gateway != (*plan)->gateway)
        std::abort();
}

void check_metrics(std::string_view text) {
    const MemoryUse memory = parse_memory(text);
    if (memory.used > memory.total) std::abort();
    const auto before = parse_cpu_times(text.substr(0, text.size() / 2));
    const auto after = parse_cpu_times(text.substr(text.size() / 2));
    if (!before || !after) return;
    const double share = cpu_used_percent(*before, *after);
    if (!(share >= 0 && share <= 100)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    check_init(text);
    check_init("{" + text + "}");
    check_network(text);
    check_network("glovebox.ip=" + text);
    check_metrics(text);
    check_hosts(text, "name");
    check_bundle(text, {"-----BEGIN CERTIFICATE-----\nMAAA\n-----END CERTIFICATE-----\n", "0123abcd"});
    if (const auto authority = make_authority(text, "0123abcd"); authority && !authority->pem.empty())
        check_bundle("", *authority);
    return 0;
}
