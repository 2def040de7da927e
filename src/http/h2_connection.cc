// SPDX-License-Identifier: Apache-2.0
#include "http/h2_connection.h"

#include <array>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/log.h"
#include "http/h2_stream.h"

namespace gb::http::detail {
namespace {

void rethrow(const std::exception_ptr& failure) {
    if (failure) std::rethrow_exception(failure);
}

// A reading coroutine, a writing one, and a timer. All of them, and every handler, hold it.
class H2Connection : public std::enable_shared_from_this<H2Connection> {
  public:
    H2Connection(std::shared_ptr<ServerCore> core, std::shared_ptr<Stream> stream, tcp::endpoint peer)
        : core_(std::move(core)),
          stream_(std::move(stream)),
          peer_(peer),
          output_(core_->executor),
          timer_(core_->executor),
          session_(
              core_->executor,
              {.max_concurrent_streams = core_->options.max_concurrent_streams,
               .max_header_bytes = core_->options.max_header_bytes},
              [this](std::shared_ptr<H2Stream> request) { begin(std::move(request)); },
              [this] { output_.notify(); }) {}

    awaitable<void> run() {
        auto self = shared_from_this();
        ServerCore::Open counted(*core_, *stream_);
        asio::co_spawn(core_->executor, write(self), rethrow);
        co_await read();
        timer_.cancel();
        session_.close();
        done_ = true;
        output_.notify();
        stream_->close();
    }

  private:
    enum class Waiting { nothing, head, idle, goodbye };

    awaitable<void> read() {
        auto chunk = std::make_unique_for_overwrite<std::array<char, 65536>>();
        while (!core_->stopped()) {
            limit(wanted());
            auto [ec, n] = co_await stream_->read_some(asio::buffer(*chunk));
            if (ec) co_return;
            if (session_.ending()) continue;  // of no interest; the timer ends it
            const Status received = session_.receive({chunk->data(), n});
            if (!received) log::debug("HTTP/2 connection ended", {{"reason", received.error().message}});
            output_.notify();
        }
    }

    awaitable<void> write([[maybe_unused]] std::shared_ptr<H2Connection> self) {
        while (!done_) {
            for (std::string_view bytes = session_.output(); !bytes.empty(); bytes = session_.output()) {
                auto [ec, n] = co_await stream_->write(asio::buffer(bytes.data(), bytes.size()));
                if (ec) {
                    stream_->close();
                    co_return;
                }
            }
            if (done_) co_return;
            if (session_.over()) break;
            limit(wanted());
            co_await output_.wait();
        }
        if (done_) co_return;
        // Closing now could take the last frames back: the client reads them and closes.
        limit(Waiting::goodbye);
        co_await stream_->shutdown_send();
    }

    void begin(std::shared_ptr<H2Stream> request) {
        asio::co_spawn(core_->executor, answer(shared_from_this(), std::move(request)), rethrow);
    }

    static awaitable<void> answer(std::shared_ptr<H2Connection> self, std::shared_ptr<H2Stream> request) {
        co_await request->serve(self->core_->handler, self->peer_);
    }

    [[nodiscard]] Waiting wanted() const {
        if (waiting_ == Waiting::goodbye || session_.ending()) return Waiting::goodbye;
        if (!session_.idle()) return Waiting::nothing;
        return session_.awaits_head() ? Waiting::head : Waiting::idle;
    }

    // One limit at a time, begun once: frames that drip in gain nothing.
    void limit(Waiting what) {
        if (what == waiting_) return;
        waiting_ = what;
        switch (what) {
            case Waiting::nothing:
                timer_.cancel();
                return;
            case Waiting::head:
                timer_.expires_after(core_->options.header_timeout);
                break;
            case Waiting::idle:
                timer_.expires_after(core_->options.idle_timeout);
                break;
            case Waiting::goodbye:
                timer_.expires_after(std::chrono::seconds(1));
                break;
        }
        timer_.async_wait([self = shared_from_this(), what](const boost::system::error_code& ec) {
            if (ec || self->done_ || self->waiting_ != what) return;
            if (what != Waiting::idle) return self->stream_->close();
            self->limit(Waiting::goodbye);
            self->session_.terminate();
        });
    }

    std::shared_ptr<ServerCore> core_;
    std::shared_ptr<Stream> stream_;
    tcp::endpoint peer_;
    Signal output_;
    asio::steady_timer timer_;
    Waiting waiting_ = Waiting::nothing;
    bool done_ = false;
    H2Session session_;  // last: what it calls is there before it and after it
};

}  // namespace

awaitable<void> serve_h2(std::shared_ptr<ServerCore> core, std::shared_ptr<Stream> stream,
                         tcp::endpoint peer) {
    auto connection = std::make_shared<H2Connection>(std::move(core), std::move(stream), peer);
    co_await connection->run();
}

}  // namespace gb::http::detail
