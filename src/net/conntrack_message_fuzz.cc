#include <cstdint>

#include "net/conntrack_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (auto end = gb::net::parse_flow({reinterpret_cast<const char*>(data), size}))
        (void)gb::net::decision_line(*end);
    return 0;
}
