#include <cstdint>

#include "api/create_request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    for (auto generation : {gb::api::Generation::v1, gb::api::Generation::v2}) {
        auto request = gb::api::parse_create(text, generation);
        if (request && request->template_ref.empty()) __builtin_trap();
    }
    return 0;
}
