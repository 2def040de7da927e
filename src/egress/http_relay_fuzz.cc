// SPDX-License-Identifier: Apache-2.0
// A guest, or by a flag an upstream, that sends anything. What a strict upstream sees is whole requests with
// exactly one Host, each one that policy allowed; what a guest sees of any upstream is answers that a strict
// reader understands, one for each request.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <set>

#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "egress/http_relay.h"

namespace {

using namespace gb;
using namespace gb::egress;
namespace asio = http::asio;
using http::awaitable;
using http::Stream;

void check(bool holds) {
    if (!holds) std::abort();
}

// Written apart from the code under test, and as hard as can be: anything but what the relay itself writes
// ends it.
class StrictReader {
  public:
    struct Message {
        std::string first;
        std::vector<std::pair<std::string, std::string>> fields;
    };
    // `bodiless`: of an answer, whether the request was one whose answer has no body.
    StrictReader(bool requests, std::function<bool(std::size_t)> bodiless = {})
        : requests_(requests), bodiless_(std::move(bodiless)) {}

    void feed(std::string_view bytes) {
        input_.append(bytes);
        while (step()) {
        }
    }
    std::vector<Message> messages;
    std::size_t whole = 0;  // of those, how many with their bodies
    bool tunnel = false;    // after a 101

  private:
    bool step() {
        if (tunnel) return false;
        if (state_ == State::head) return head();
        if (state_ == State::length) {
            const std::size_t n = std::min<std::size_t>(left_, input_.size());
            input_.erase(0, n);
            left_ -= n;
            return left_ == 0 && done();
        }
        if (state_ == State::chunk_end) {
            if (input_.size() < 2) return false;
            check(input_.starts_with("\r\n"));
            input_.erase(0, 2);
            if (last_chunk_) return done();
            state_ = State::chunk;
            return true;
        }
        if (state_ == State::chunk_body) {
            const std::size_t n = std::min<std::size_t>(left_, input_.size());
            input_.erase(0, n);
            left_ -= n;
            if (left_ == 0) state_ = State::chunk_end;
            return left_ == 0;
        }
        const std::size_t end = input_.find("\r\n");
        if (end == std::string::npos) {
            check(input_.size() < 20);
            return false;
        }
        check(end > 0 && end < 16);
        check(std::ranges::all_of(input_.substr(0, end),
                                  [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }));
        left_ = std::stoul(input_.substr(0, end), nullptr, 16);
        input_.erase(0, end + 2);
        last_chunk_ = left_ == 0;
        state_ = last_chunk_ ? State::chunk_end : State::chunk_body;
        return true;
    }
    bool head() {
        const std::size_t end = input_.find("\r\n\r\n");
        if (end == std::string::npos) return false;
        std::string text = input_.substr(0, end + 2);
        input_.erase(0, end + 4);
        Message message;
        std::size_t lengths = 0, codings = 0;
        for (bool first = true; !text.empty(); first = false) {
            const std::size_t line_end = text.find("\r\n");
            const std::string line = text.substr(0, line_end);
            text.erase(0, line_end + 2);
            check(line.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos && !line.empty());
            if (first) {
                message.first = line;
                if (requests_)
                    check(line.ends_with(" HTTP/1.1") && std::ranges::count(line, ' ') == 2);
                else
                    check(line.starts_with("HTTP/1.1 ") && line.size() >= 13 && line[12] == ' ');
                continue;
            }
            const std::size_t colon = line.find(": ");
            check(colon != std::string::npos && colon > 0);
            const std::string name = line.substr(0, colon), value = line.substr(colon + 2);
            check(name.find_first_of(" \t:\"(),/;<=>?@[\\]{}") == std::string::npos);
            if (http::iequals(name, "Content-Length")) {
                ++lengths;
                check(!value.empty() &&
                      std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; }));
                left_ = std::stoull(value);
            }
            if (http::iequals(name, "Transfer-Encoding")) {
                ++codings;
                check(value == "chunked");
            }
            message.fields.emplace_back(name, value);
        }
        check(lengths + codings <= 1);
        const std::string status = requests_ ? "" : message.first.substr(9, 3);
        messages.push_back(std::move(message));
        if (status == "101") tunnel = true;
        if (status == "100") {
            messages.pop_back();
            return true;
        }
        const bool no_body =
            !requests_ && (status == "204" || status == "304" || bodiless_(messages.size() - 1));
        if (codings > 0 && !no_body)
            state_ = State::chunk;
        else if (lengths > 0 && left_ > 0 && !no_body)
            state_ = State::length;
        else
            return done();
        return true;
    }
    bool done() {
        state_ = State::head;
        ++whole;
        return true;
    }

    enum class State { head, length, chunk, chunk_body, chunk_end };
    bool requests_;
    std::function<bool(std::size_t)> bodiless_;
    State state_ = State::head;
    std::string input_;
    std::uint64_t left_ = 0;
    bool last_chunk_ = false;
};

std::pair<std::shared_ptr<Stream>, std::shared_ptr<Stream>> make_pair_of_streams(asio::io_context& io) {
    int ends[2];
    check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    http::tcp::socket one(io), two(io);
    one.assign(http::tcp::v4(), ends[0]);
    two.assign(http::tcp::v4(), ends[1]);
    return {std::make_shared<http::TcpStream>(std::move(one)),
            std::make_shared<http::TcpStream>(std::move(two))};
}

bool allowed(std::string_view host) {
    return host == "a.test" || host == "b.test:80" || host == "c";
}

struct World {
    asio::io_context io{1};
    std::string_view guest_bytes, upstream_bytes;
    bool fuzzed_upstream = false;
    std::size_t step = 1;
    std::set<std::string> rules;
    StrictReader answers{false, [](std::size_t) { return false; }};
    std::deque<StrictReader> upstreams;

    awaitable<Result<Route>> route(std::string host) {
        if (!allowed(host)) co_return fail(ErrorCode::permission_denied, "deny");
        Route out{.key = host};
        out.rules = {{"X-Secret", "${e2b.secrets.s}"}};
        out.secrets = [](std::string_view) -> Result<std::string> { return "value"; };
        out.open = [this, host]() -> awaitable<Result<std::shared_ptr<Stream>>> {
            if (upstreams.size() > 20) co_return fail(ErrorCode::unavailable, "enough");
            auto [near, far] = make_pair_of_streams(io);
            upstreams.emplace_back(true);
            asio::co_spawn(io, upstream(far, upstreams.back(), host), asio::detached);
            co_return near;
        };
        co_return out;
    }

    awaitable<void> send(Stream& to, std::string_view bytes) const {
        while (!bytes.empty()) {
            const std::string_view part = bytes.substr(0, step);
            bytes.remove_prefix(part.size());
            auto [ec, n] = co_await to.write(asio::buffer(part.data(), part.size()));
            if (ec) co_return;
        }
    }

    awaitable<void> upstream(std::shared_ptr<Stream> stream, StrictReader& reader, std::string host) {
        std::size_t answered = 0;
        auto room = std::make_unique<std::array<char, 65536>>();
        for (;;) {
            auto [ec, n] = co_await stream->read_some(asio::buffer(*room));
            if (ec) co_return;
            reader.feed({room->data(), n});
            for (const auto& message : reader.messages) {
                std::size_t hosts = 0, secrets = 0;
                for (const auto& [name, value] : message.fields) {
                    if (http::iequals(name, "Host")) {
                        ++hosts;
                        check(value == host);
                    }
                    if (http::iequals(name, "X-Secret")) {
                        ++secrets;
                        check(value == "value");
                    }
                    for (const char* hop : {"Connection", "Upgrade", "TE", "Keep-Alive", "HTTP2-Settings",
                                            "Proxy-Authorization"})
                        if (http::iequals(name, hop))
                            check(value == "Upgrade" || http::iequals(value, "websocket"));
                }
                check(hosts == 1 && secrets == 1);
            }
            if (fuzzed_upstream) {
                if (answered++ == 0) {
                    co_await send(*stream, upstream_bytes);
                    co_await stream->shutdown_send();
                }
                continue;
            }
            for (; answered < reader.whole; ++answered)
                co_await send(*stream, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    }

    awaitable<void> guest_reads(std::shared_ptr<Stream> stream) {
        auto room = std::make_unique<std::array<char, 65536>>();
        for (;;) {
            auto [ec, n] = co_await stream->read_some(asio::buffer(*room));
            if (n > 0 && fuzzed_upstream) answers.feed({room->data(), n});
            if (ec) co_return;
        }
    }
    awaitable<void> guest_writes(std::shared_ptr<Stream> stream) {
        co_await send(*stream, guest_bytes);
        if (fuzzed_upstream) co_return;
        // With its end the guest has left; before that all that can be answered is.
        for (int i = 0; i < 50; ++i) co_await asio::post(io, asio::use_awaitable);
        co_await stream->shutdown_send();
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    World world;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
    world.fuzzed_upstream = (data[0] & 1) != 0;
    world.step = data[1] == 0xff ? 100'000 : data[1] + std::size_t{1};
    static const std::string kPlain =
        "GET / HTTP/1.1\r\nHost: a.test\r\n\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    static const std::string kSocket =
        "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nframe";
    world.guest_bytes = !world.fuzzed_upstream ? bytes : (data[0] & 2) != 0 ? kSocket : kPlain;
    world.upstream_bytes = bytes;

    auto [guest, far] = make_pair_of_streams(world.io);
    RelayOptions options;
    options.max_head_bytes = 4096;
    options.max_answer_head_bytes = 4096;
    options.route = [&](std::string_view host) { return world.route(std::string(host)); };
    auto relay = std::make_shared<HttpRelay>(far, options);
    far.reset();
    bool over = false;
    asio::co_spawn(world.io, relay->run(), [&](const std::exception_ptr& failure) {
        check(failure == nullptr);
        over = true;
    });
    asio::co_spawn(world.io, world.guest_reads(guest), asio::detached);
    asio::co_spawn(world.io, world.guest_writes(guest), asio::detached);
    // Until nothing moves any more.
    while (!over && world.io.poll() > 0) {
    }
    relay->stop();
    world.io.run_for(std::chrono::seconds(2));
    check(over);
    if (world.fuzzed_upstream) {
        check(world.answers.messages.size() <= 2);  // one for each request
        for (const auto& message : world.answers.messages)
            if (message.first.starts_with("HTTP/1.1 101")) check((data[0] & 2) != 0);
    }
    return 0;
}
