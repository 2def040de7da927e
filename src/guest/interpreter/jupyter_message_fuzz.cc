// SPDX-License-Identifier: Apache-2.0
// Frames as an untrusted kernel process could send them: lengths and bytes from the fuzzer, with a right
// signature so that the parsing behind it is reached.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/crypto.h"
#include "base/ids.h"
#include "guest/interpreter/execution.h"
#include "guest/interpreter/jupyter_message.h"

using namespace gb::interpreter;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    std::vector<std::string_view> raw;
    while (rest.size() > 2 && raw.size() < 12) {
        const std::size_t length = std::min<std::size_t>(
            static_cast<unsigned char>(rest[0]) * 256U + static_cast<unsigned char>(rest[1]),
            rest.size() - 2);
        raw.push_back(rest.substr(2, length));
        rest.remove_prefix(2 + length);
    }
    (void)parse_message(raw, "key");

    if (raw.size() < 4) return 0;
    std::string all;
    for (std::size_t i = 0; i < 4; ++i) all += raw[i];
    const std::string signature = gb::to_hex(gb::hmac_sha256("key", all));
    std::vector<std::string_view> frames = {"<IDS|MSG>", signature, raw[0], raw[1], raw[2], raw[3]};
    auto message = parse_message(frames, "key");
    if (!message) return 0;
    Execution execution(message->parent_id);
    execution.feed(*message);
    return 0;
}
