// SPDX-License-Identifier: Apache-2.0
// HTTP/2 without its transport (RFC 9113): the bytes of a client in, requests out; answers in, bytes out.
// nghttp2 knows the protocol; here are the limits and what belongs to one request. Internal to this folder.
// One executor; not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "base/result.h"
#include "http/message.h"

using nghttp2_session = struct nghttp2_session;  // nghttp2's own declaration

namespace gb::http::detail {

class H2Stream;

struct H2Limits {
    std::uint32_t max_concurrent_streams = 256;
    std::size_t max_header_bytes = 64 * 1024;  // of a request, as RFC 9113 6.5.2 counts
    // What a client may send of one body before its handler takes some; a handler may hold one piece beside
    // it.
    std::uint32_t stream_window = 256 * 1024;
    // Given back at once, so that no slow handler is in the way of other requests.
    std::uint32_t connection_window = 4 * 1024 * 1024;
    // Requests that end in a reset, by the client or for its mistakes: so many at once, so many a second
    // afterwards. More ends the connection (CVE-2023-44487, CVE-2025-8671).
    std::uint32_t resets_at_once = 1000, resets_per_second = 33;
};

class H2Session {
  public:
    using OnRequest = std::function<void(std::shared_ptr<H2Stream>)>;

    // `on_request` gets each request whose head is whole, and must see to it that end_request() is called for
    // it. `wake` says that there is something to send. Neither is called after close().
    H2Session(boost::asio::any_io_executor executor, H2Limits limits, OnRequest on_request,
              std::function<void()> wake);
    ~H2Session();
    H2Session(const H2Session&) = delete;
    H2Session& operator=(const H2Session&) = delete;

    // Takes all of `bytes`. An error ends the connection without another word.
    Status receive(std::string_view bytes);
    // What is to be sent next, some 64 KiB; empty while there is nothing. Valid until the next call. What is
    // not asked for is not made, so a client that does not read makes the answers wait.
    std::string_view output();
    // Says goodbye: with `output()` sent the session is over.
    void terminate();
    // Nothing more is to be read. There may still be a last word to send.
    [[nodiscard]] bool ending() const;
    // Nor to be sent.
    [[nodiscard]] bool over() const;
    // The connection is gone: every request learns that.
    void close();

    // No request is being sent or answered.
    [[nodiscard]] bool idle() const { return streams_.empty() && serving_.empty(); }
    // A client has begun a head and not ended it, or has sent nothing at all yet.
    [[nodiscard]] bool awaits_head() const { return head_open_ || !greeted_; }

    // The handler of a request has returned; it was answered or cut.
    void end_request(H2Stream& stream);

  private:
    friend class H2Stream;
    friend struct H2Callbacks;
    struct Freer {
        void operator()(nghttp2_session* session) const;
    };

    // For H2Stream; each wakes the connection.
    Status respond(H2Stream& stream, int status, const Headers& headers, bool with_body);
    void say_continue(std::int32_t id);
    void resume(std::int32_t id);
    void consumed(std::int32_t id, std::size_t bytes);
    void reset(std::int32_t id, std::uint32_t error_code);

    H2Stream* find(std::int32_t id);
    bool complete_head(H2Stream& stream, bool ended);
    void count_reset();
    void wake();

    boost::asio::any_io_executor executor_;
    const H2Limits limits_;
    OnRequest on_request_;
    std::function<void()> wake_;
    std::unique_ptr<nghttp2_session, Freer> session_;
    std::unordered_map<std::int32_t, std::shared_ptr<H2Stream>> streams_;  // those that nghttp2 has open
    std::unordered_map<std::int32_t, std::shared_ptr<H2Stream>> serving_;  // those whose handlers run
    std::vector<std::shared_ptr<H2Stream>> ready_;
    std::string out_;
    double resets_left_;
    std::chrono::steady_clock::time_point resets_counted_;
    bool greeted_ = false, head_open_ = false, failed_ = false, closed_ = false;
};

}  // namespace gb::http::detail
