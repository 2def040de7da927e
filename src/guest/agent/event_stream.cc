// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/event_stream.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>

#include "base/crypto.h"

namespace gb::agent {
namespace {

using Clock = Subscriber::Clock;

// Small messages that wait together go out in one write of about this size.
constexpr std::size_t kBatch = 256 * 1024;

const Error kDeadline(ErrorCode::deadline_exceeded, "the command ran into its time limit");

// By hand for JSON: output can be much, and the library takes several times as long as the base64.
std::string encode_output(Encoding encoding, const OutputEvent& event) {
    if (encoding == Encoding::json) {
        const std::string_view field = event.kind == OutputKind::standard_out     ? "stdout"
                                       : event.kind == OutputKind::standard_error ? "stderr"
                                                                                  : "pty";
        return fmt::format(R"({{"event":{{"data":{{"{}":"{}"}}}}}})", field, base64_encode(event.data));
    }
    ::process::StartResponse message;
    auto& data = *message.mutable_event()->mutable_data();
    if (event.kind == OutputKind::standard_out)
        data.set_stdout(event.data);
    else if (event.kind == OutputKind::standard_error)
        data.set_stderr(event.data);
    else
        data.set_pty(event.data);
    return encode_message(encoding, message);
}

void fill(::process::ProcessEvent& message, const EndEvent& event) {
    auto& end = *message.mutable_end();
    end.set_exit_code(event.exit_code);
    end.set_exited(event.exited);
    end.set_status(event.status);
    if (event.exit_code != 0) end.set_error(event.status);
}

class Follower {
  public:
    Follower(StreamWriter& writer, Following& following) : writer_(writer), following_(following) {}

    // Ends when the stream has ended or cannot go on.
    awaitable<void> run() {
        ::process::StartResponse first;
        first.mutable_event()->mutable_start()->set_pid(
            static_cast<std::uint32_t>(following_.process->pid()));
        if (!co_await writer_.send(first)) co_return;
        Subscriber& subscriber = *following_.subscriber;
        auto last_sent = Clock::now();
        for (;;) {
            if (subscriber.is_cut()) {
                // Something was lost; an orderly end would hide it.
                writer_.exchange().response.abort();
                co_return;
            }
            const auto now = Clock::now();
            if (following_.deadline && now >= *following_.deadline) {
                co_await writer_.end(std::unexpected(kDeadline));
                co_return;
            }
            if (subscriber.empty()) {
                const auto ping = last_sent + following_.keepalive;
                if (now < ping) {
                    co_await subscriber.wait_until(following_.deadline ? std::min(ping, *following_.deadline)
                                                                       : ping);
                    // Whoever cancelled this (the client has gone) must be heard, although waiting swallows
                    // it.
                    if ((co_await asio::this_coro::cancellation_state).cancelled() !=
                        asio::cancellation_type::none)
                        co_return;
                    continue;
                }
                ::process::StartResponse message;
                message.mutable_event()->mutable_keepalive();
                if (!co_await writer_.send(message)) co_return;
                last_sent = Clock::now();
                continue;
            }
            if (!co_await send_queued()) co_return;
            last_sent = Clock::now();
        }
    }

  private:
    // False when the stream has ended.
    awaitable<bool> send_queued() {
        std::string frames;
        while (frames.size() < kBatch) {
            const EventPtr event = following_.subscriber->pop();
            if (!event) break;
            const auto* end = std::get_if<EndEvent>(event.get());
            if (end == nullptr) {
                writer_.add_encoded(frames, encode_output(writer_.encoding(), std::get<OutputEvent>(*event)));
                continue;
            }
            const bool in_time = !end->timed_out || !following_.started_it;
            if (in_time) {
                ::process::StartResponse message;
                fill(*message.mutable_event(), *end);
                writer_.add_frame(frames, message);
            }
            co_await writer_.end(in_time ? Status() : Status(std::unexpected(kDeadline)), std::move(frames));
            co_return false;
        }
        const Status written = co_await writer_.write(frames);
        following_.subscriber->made_progress();
        co_return written.has_value();
    }

    StreamWriter& writer_;
    Following& following_;
};

}  // namespace

awaitable<void> follow(StreamWriter& writer, Following following) {
    using namespace asio::experimental::awaitable_operators;
    struct Leave {
        Following& following;
        ~Leave() { following.process->unsubscribe(following.subscriber); }
    } leave{following};
    Follower follower(writer, following);
    const auto first = co_await (follower.run() || writer.exchange().response.peer_closed());
    if (first.index() == 1 && following.started_it) following.process->starter_left();
}

}  // namespace gb::agent
