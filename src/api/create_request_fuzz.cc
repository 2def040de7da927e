// A create request: what is understood is complete, and means the same in both generations and when written
// down.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "api/create_request.h"

namespace {

using namespace gb::api;

bool same_network(const gb::CreateSandbox& a, const gb::CreateSandbox& b) {
    return a.network.allow_out == b.network.allow_out && a.network.deny_out == b.network.deny_out;
}

void check(const std::string& body) {
    const auto first = parse_create(body, Generation::v1);
    const auto second = parse_create(body, Generation::v2);
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
    // What get gives back is what was asked for.
    if (second->network_json.empty()) return;
    const auto again =
        parse_create(R"({"templateID":"b","network":)" + second->network_json + "}", Generation::v2);
    if (!again || !same_network(*again, *second)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    check(text);
    check(R"({"templateID":"b",)" + text + "}");
    check(R"({"templateID":"b","network":{)" + text + "}}");
    return 0;
}
