// SPDX-License-Identifier: Apache-2.0
// Bytes of a stranger behind the preface of HTTP/2: as they are, or cut into frames so that more of them get
// through. Whatever comes, handlers find out in the end, and nothing is kept beyond the limits.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "http/h2_stream.h"

namespace {

using namespace gb;
using namespace gb::http;
using namespace gb::http::detail;

constexpr H2Limits kLimits{.max_concurrent_streams = 8,
                           .max_header_bytes = 1024,
                           .stream_window = 4096,
                           .connection_window = 65'536,
                           .resets_at_once = 20};

// The target decides what the handler does, so that the fuzzer does.
awaitable<void> handle(Exchange& exchange) {
    for (const auto& [name, value] : exchange.head.headers.items())
        if (name.empty() || name[0] == ':' || value.find_first_of({"\r\n\0", 3}) != std::string::npos)
            std::abort();
    const char kind = exchange.target.raw_target.back();
    if (kind == 'n') co_return;
    if (kind == 'c') co_await exchange.response.peer_closed();
    if (kind == 's') {
        co_await exchange.response.send(200, {{"X", "y"}}, "whole");
        co_return;
    }
    Headers headers = exchange.head.headers;  // anything
    co_await exchange.response.start(200, std::move(headers), {});
    for (;;) {
        auto piece = co_await exchange.body.next();
        if (!piece || piece->empty()) break;
        if (piece->size() > kLimits.stream_window) std::abort();
        if (!co_await exchange.response.write(*piece)) break;
    }
    if (kind == 'a') exchange.response.abort();
    if (kind == 'f') co_await exchange.response.write(std::string(100'000, 'w'));
    if (kind != 'u') co_await exchange.response.finish();
}

awaitable<void> serve(std::shared_ptr<H2Session> session, std::shared_ptr<H2Stream> stream,
                      const Handler& handler, std::size_t& running) {
    ++running;
    co_await stream->serve(handler, {});
    --running;
    (void)session;
}

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint8_t stream, std::string_view payload) {
    std::string out{
        0, 0, static_cast<char>(payload.size()), static_cast<char>(type), static_cast<char>(flags), 0,
        0, 0, static_cast<char>(stream)};
    return out.append(payload);
}

// Records of type, flags, stream, size and payload become frames with true lengths.
std::string to_frames(std::string_view text) {
    std::string out;
    while (text.size() >= 4) {
        auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
        const std::string_view payload = text.substr(4, byte(3));
        out += frame(byte(0) % 10, byte(1), byte(2) % 32, payload);
        text.remove_prefix(4 + payload.size());
    }
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
    const std::size_t step = data[1] + std::size_t{1};
    std::string input = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    if ((data[0] & 1) != 0) input += frame(4, 0, 0, {});  // SETTINGS
    if ((data[0] & 2) != 0)
        input += to_frames(text);
    else
        input += text;
    const bool reads = (data[0] & 4) == 0;  // else nothing that we send is taken until the end

    boost::asio::io_context io(1);
    std::size_t running = 0;
    const Handler handler = handle;
    std::shared_ptr<H2Session> session;
    session = std::make_shared<H2Session>(
        io.get_executor(), kLimits,
        [&](std::shared_ptr<H2Stream> stream) {
            boost::asio::co_spawn(io, serve(session, std::move(stream), handler, running),
                                  [](const std::exception_ptr& failure) {
                                      if (failure) std::abort();
                                  });
        },
        [] {});
    std::string_view rest = input;
    while (!rest.empty() && !session->ending()) {
        if (!session->receive(rest.substr(0, step))) break;
        rest.remove_prefix(std::min(rest.size(), step));
        io.restart();
        io.poll();
        if (running > std::size_t{2} * kLimits.max_concurrent_streams) std::abort();
        while (reads && !session->output().empty()) {
        }
    }
    for (int i = 0; i < 100 && !session->output().empty(); ++i) {
        io.restart();
        io.poll();
    }
    session->close();
    io.restart();
    io.poll();
    if (running != 0 || !session->idle()) std::abort();
    return 0;
}
