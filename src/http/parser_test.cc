// SPDX-License-Identifier: Apache-2.0
#include "http/parser.h"

#include <memory>

#include <gtest/gtest.h>

namespace gb::http::detail {
namespace {

// The body of a message whose bytes arrive in pieces of `step`; "refused" or "unfinished" if there is none.
template <bool is_request>
std::string body_of(std::string_view text, std::size_t step) {
    auto parser = std::make_unique<MessageParser<is_request>>(1024);
    std::string input, out;
    bool has_head = false;
    while (!text.empty()) {
        input.append(text.substr(0, step));
        text.remove_prefix(std::min(text.size(), step));
        if (!has_head) {
            const auto head = parser->parse_head(input);
            if (!head) return "refused";
            if (!*head) continue;
            has_head = true;
        }
        for (;;) {
            const auto piece = parser->parse_body(input);
            if (!piece) return "refused";
            if (piece->empty()) break;
            out += *piece;
        }
    }
    return has_head && parser->done() ? out : "unfinished";
}

constexpr std::string_view kHead = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

TEST(Parser, ChunksInAnyPieces) {
    for (std::string_view chunks : {"0\r\n\r\n", "0\r\nA: b\r\n\r\n", "0;x=y\r\n\r\n", "000\r\n\r\n",
                                    "01\r\nx\r\n0\r\n\r\n", "3\r\n0\r\n\r\n0\r\n\r\n"}) {
        const std::string request = std::string(kHead).append(chunks),
                          answer = std::string(kAnswer).append(chunks);
        const std::string body = body_of<true>(request, request.size());
        EXPECT_NE(body, "unfinished") << chunks;
        for (std::size_t step = 1; step < request.size(); ++step) {
            EXPECT_EQ(body_of<true>(request, step), body) << chunks << " in pieces of " << step;
            EXPECT_EQ(body_of<false>(answer, step), body) << chunks << " in pieces of " << step;
        }
    }
}

// Nothing that a peer sends is kept without a limit.
TEST(Parser, EndlessChunkHeadersAreRefused) {
    for (const char* chunk : {"5;x=", "0;x=", "0\r\nA: ", "3\r\nabc\r\n0\r\nA: "})
        for (std::size_t step : {1U, 100U})
            EXPECT_EQ(body_of<true>(std::string(kHead) + chunk + std::string(4096, 'y'), step), "refused")
                << chunk;
}

}  // namespace
}  // namespace gb::http::detail
