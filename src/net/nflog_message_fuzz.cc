// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string_view>

#include "net/netlink.h"
#include "net/nflog_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view bytes(reinterpret_cast<const char*>(data), size);
    if (auto packet = gb::net::parse_nflog(bytes)) (void)gb::net::decision_line(packet->decision);
    for (const gb::net::Message& message : gb::net::parse_messages(bytes))
        if (auto packet = gb::net::parse_nflog(message.body)) (void)gb::net::decision_line(packet->decision);
    return 0;
}
