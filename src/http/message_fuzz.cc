#include <cstdint>

#include "http/parser.h"

// Bytes of a stranger as a request and as a target.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    (void)gb::http::parse_target(text);

    auto parser = std::make_unique<gb::http::detail::MessageParser<true>>(8192);
    std::string input(text);
    auto head = parser->parse_head(input);
    if (head && *head) {
        (void)parser->headers();
        for (int i = 0; i < 64; ++i) {
            auto piece = parser->parse_body(input);
            if (!piece || piece->empty()) break;
        }
    }
    return 0;
}
