// SPDX-License-Identifier: Apache-2.0
// A create request: what is understood is complete, and means the same in both generations and when written
// down.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "api/create_request.h"
#include "api/header_rules.h"
#include "api/network_request.h"

namespace {

using namespace gb::api;

bool same_network(const gb::CreateSandbox& a, const gb::CreateSandbox& b) {
    return a.network == b.network;
}

// Nothing that would end a header or the line of it, and no placeholder that is not a secret's.
void check_rules(const gb::CreateSandbox& request) {
    for (const auto& [host, headers] : request.network.rules) {
        if (headers.empty()) std::abort();
        for (const auto& header : headers) {
            if (header.name.empty() || header.name.find_first_of(": \r\n") != std::string::npos) std::abort();
            if (header.value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) std::abort();
            for (std::size_t at = header.value.find("${e2b."); at != std::string::npos;
                 at = header.value.find("${e2b.", at + 1))
                if (header.value.compare(at, 14, "${e2b.secrets.") != 0) std::abort();
        }
    }
    for (const std::string& name : secret_names(request.network))
        if (name.empty() || name.contains('}')) std::abort();
}

void check(const std::string& body) {
    const auto first = parse_create(body, Generation::v1);
    auto second = parse_create(body, Generation::v2);
    // Private ports need a secured sandbox, which only the second generation always is.
    const bool only_second = second && !first && !second->public_traffic;
    if (first.has_value() != second.has_value() && !only_second) std::abort();
    if (!first) {
        if (first.error().code != gb::ErrorCode::invalid_argument) std::abort();
        return;
    }
    if (second->template_ref.empty() || !second->secure) std::abort();
    if (!second->auto_pause_memory && (!second->auto_pause || second->auto_resume)) std::abort();
    if (second->mask_request_host.find_first_of("\r\n \t/@") != std::string::npos) std::abort();
    if (first->template_ref != second->template_ref || first->env_vars != second->env_vars ||
        first->metadata != second->metadata || !same_network(*first, *second))
        std::abort();
    for (const auto& [name, value] : second->env_vars)
        if (name.empty() || name.contains('=') || (name + value).contains('\0')) std::abort();
    check_rules(*second);
    if (second->network_json.empty()) return;
    if (const auto& proxy = second->network.egress_proxy;
        proxy && proxy->password.size() > 40 && second->network_json.contains(proxy->password))
        std::abort();
    // What get gives back is what was asked for, without the password.
    const std::string access = second->network.allow_internet_access
                                   ? (*second->network.allow_internet_access ? "true" : "false")
                                   : "null";
    const auto again = parse_create(R"({"templateID":"b","allow_internet_access":)" + access +
                                        R"(,"network":)" + second->network_json + "}",
                                    Generation::v2);
    if (second->network.egress_proxy) second->network.egress_proxy->password.clear();
    if (!again || !same_network(*again, *second)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    check(text);
    check(R"({"templateID":"b",)" + text + "}");
    check(R"({"templateID":"b","network":{)" + text + "}}");
    check(R"({"templateID":"b","network":{"rules":{"a.com":[{"transform":{"headers":{)" + text + "}}}]}}}");
    if (const auto update = parse_network_update(text)) {
        const auto again = parse_network_update(update->egress_json);
        if (!update->network.egress_proxy && !update->network.allow_internet_access &&
            (!again || !(again->network == update->network)))
            std::abort();
    }
    return 0;
}
