// SPDX-License-Identifier: Apache-2.0
// What a guest prints in place of outcomes, and what an internet sends in place of DNS answers.
#include <cstdint>
#include <cstdlib>

#include "probe/payloads.h"
#include "probe/probe.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (auto read = gb::probe::parse_outcome(text)) {
        auto again = gb::probe::parse_outcome(gb::probe::format_outcome(read->index, read->outcome));
        if (!again) std::abort();
        for (const char c : read->outcome.detail + read->outcome.address)
            if (c < ' ' || c > '~') std::abort();
    }
    (void)gb::probe::parse_probe(text);
    (void)gb::probe::read_dns_answer(text,
                                     size > 1 ? static_cast<std::uint16_t>(data[0] << 8U | data[1]) : 0);
    (void)gb::probe::is_echo_reply(text, 1);
    return 0;
}
