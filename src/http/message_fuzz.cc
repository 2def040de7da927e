#include <cstdint>

#include "http/connect.h"
#include "http/parser.h"

// Bytes of a stranger as a request, as a target and as Connect envelopes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    (void)gb::http::parse_target(text);

    gb::http::EnvelopeReader reader(4096);
    for (std::size_t at = 0; at < text.size(); at += 7) {
        reader.feed(text.substr(at, 7));
        for (;;) {
            auto frame = reader.next();
            if (!frame || !*frame) break;
        }
    }

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
