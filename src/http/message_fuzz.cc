// SPDX-License-Identifier: Apache-2.0
// Bytes of a stranger as a message and as a target: the same in any pieces, and passed on as what was
// understood.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>

#include "http/parser.h"

namespace {

using namespace gb::http;

struct Reading {
    bool refused = false, whole = false;
    RequestHead head;
    std::string body;
};

template <bool is_request>
void read_body(detail::MessageParser<is_request>& parser, std::string& input, Reading& out) {
    for (;;) {
        const auto piece = parser.parse_body(input);
        out.refused = !piece;
        if (!piece || piece->empty()) return;
        out.body += *piece;
    }
}

// The first message of `text`, which arrives in pieces of `step` bytes; then the connection ends.
template <bool is_request>
Reading read(std::string_view text, std::size_t step) {
    auto parser = std::make_unique<detail::MessageParser<is_request>>(8192);
    Reading out;
    std::string input;
    bool has_head = false;
    while (!text.empty() && !out.refused) {
        input.append(text.substr(0, step));
        text.remove_prefix(std::min(text.size(), step));
        if (!has_head) {
            const auto head = parser->parse_head(input);
            out.refused = !head || (*head && parser->unknown_framing());
            if (out.refused || !*head) continue;
            has_head = true;
            const auto& message = parser->message();
            if constexpr (is_request)
                out.head = {message.method_string(), message.target(), parser->headers()};
            else
                out.head = {std::to_string(message.result_int()), "", parser->headers()};
        }
        read_body(*parser, input, out);
    }
    if (!has_head || out.refused) return out;
    parser->set_eof();
    read_body(*parser, input, out);
    out.whole = parser->done();
    if (out.whole == out.refused) std::abort();  // the end decides it
    return out;
}

bool same(const RequestHead& a, const RequestHead& b) {
    return a.method == b.method && a.target == b.target && a.headers.items() == b.headers.items();
}

// Nothing if it is not whole.
template <bool is_request>
std::optional<Reading> check_pieces(std::string_view text, std::size_t step) {
    const Reading once = read<is_request>(text, text.size());
    const Reading pieces = read<is_request>(text, step);
    // A head or a chunk without its end may be refused already or not; what is whole is the same.
    if (once.whole != pieces.whole) std::abort();
    if (!once.whole) return std::nullopt;
    if (!same(once.head, pieces.head) || once.body != pieces.body) std::abort();
    return once;
}

void check_target(std::string_view text) {
    const auto target = parse_target(text);
    if (!target) return;
    // What is passed on is one word, and means the same there.
    if (!std::ranges::none_of(target->raw_target,
                              [](unsigned char c) { return c <= 0x20 || c == 0x7F || c == '#'; }))
        std::abort();
    if (!target->raw_target.starts_with(target->raw_path) || !target->raw_path.starts_with('/')) std::abort();
    const auto again = parse_target(target->raw_target);
    if (!again || again->raw_target != target->raw_target || again->path != target->path ||
        again->query != target->query)
        std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 1) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    check_target(text);

    const std::size_t step = data[0] + std::size_t{1};
    (void)check_pieces<false>(text, step);
    const auto request = check_pieces<true>(text, step);
    if (!request) return 0;
    check_target(request->head.target);
    const std::string written = write_head(request->head);
    const Reading again = read<true>(written, written.size());  // without its body
    if (!same(request->head, again.head)) std::abort();
    return 0;
}
