// SPDX-License-Identifier: Apache-2.0
// The Connect protocol on top of the HTTP server: unary calls and streams, as JSON or binary messages.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <google/protobuf/message.h>

#include "base/result.h"
#include "http/connect.h"
#include "http/server.h"

namespace gb::agent {

using http::awaitable;
using http::Exchange;

enum class Encoding { json, binary };

// A message may be this long, unpacked too.
inline constexpr std::size_t kMaxMessage = std::size_t{64} << 20;

// Unknown fields are ignored in both encodings; invalid_argument for anything that is no such message.
Status decode_message(Encoding encoding, std::string_view bytes, google::protobuf::Message& message);
// Canonical JSON; default values are left out.
std::string encode_message(Encoding encoding, const google::protobuf::Message& message);

// Nothing for a content type of another kind of call.
std::optional<Encoding> unary_encoding(std::string_view content_type);
std::optional<Encoding> stream_encoding(std::string_view content_type);
awaitable<void> refuse_content_type(Exchange& exchange);

awaitable<Status> read_unary(Exchange& exchange, Encoding encoding, google::protobuf::Message& request);
awaitable<void> answer_unary(Exchange& exchange, Encoding encoding,
                             const google::protobuf::Message& response);
// For a method that there is not, whichever kind of call the client makes of it.
awaitable<void> refuse_method(Exchange& exchange);
// The HTTP status and the body say the same code.
awaitable<void> answer_unary_error(Exchange& exchange, const Error& error);

// A whole unary call. `handle` is a coroutine: (const Request&) -> awaitable<Result<Response>>.
template <class Request, class Handle>
awaitable<void> serve_unary(Exchange& exchange, Handle handle) {
    const std::optional<Encoding> encoding = unary_encoding(exchange.head.headers.get("Content-Type"));
    if (!encoding) {
        co_await refuse_content_type(exchange);
        co_return;
    }
    Request request;
    const Status read = co_await read_unary(exchange, *encoding, request);
    if (!read) {
        co_await answer_unary_error(exchange, read.error());
        co_return;
    }
    auto response = co_await handle(std::as_const(request));
    if (response)
        co_await answer_unary(exchange, *encoding, *response);
    else
        co_await answer_unary_error(exchange, response.error());
}

// The bytes of the message in a frame of a request. `coding` is Connect-Content-Encoding. invalid_argument
// for any flag but "compressed" (a request has no end-of-stream message) and for broken gzip, internal for a
// compressed frame of another coding, too_large above `limit`.
Result<std::string> unpack_frame(http::EnvelopeReader::Frame frame, std::string_view coding,
                                 std::size_t limit);

// The messages of a request stream, while they arrive.
class MessageReader {
  public:
    MessageReader(Exchange& exchange, Encoding encoding)
        : exchange_(exchange), encoding_(encoding), frames_(kMaxMessage) {}
    // False at the end of the stream.
    awaitable<Result<bool>> next(google::protobuf::Message& message);
    // The only message of a request whose answer is a stream. Reads the body to its end, so that what arrives
    // on the connection afterwards is about the connection.
    awaitable<Status> only(google::protobuf::Message& message);

  private:
    Exchange& exchange_;
    Encoding encoding_;
    http::EnvelopeReader frames_;
};

// The answer of a stream. Its HTTP status is 200 whatever happens; an error travels in the last frame.
class StreamWriter {
  public:
    StreamWriter(Exchange& exchange, Encoding encoding);
    // Appends one message to `frames`: several can go out in one write.
    void add_frame(std::string& frames, const google::protobuf::Message& message) const;
    // The same with a message that is encoded already, in encoding().
    void add_encoded(std::string& frames, std::string_view message) const;
    [[nodiscard]] Encoding encoding() const { return encoding_; }
    awaitable<Status> write(std::string_view frames);
    awaitable<Status> send(const google::protobuf::Message& message);
    // `frames` go out in the same write, before the frame that ends the stream.
    awaitable<void> end(Status status, std::string frames = {});
    [[nodiscard]] Exchange& exchange() { return exchange_; }

  private:
    Exchange& exchange_;
    Encoding encoding_;
    bool zipped_;  // the client can unpack messages
};

// A whole call of one message whose answer is a stream. `handle` is a coroutine: (StreamWriter&, const
// Request&) -> awaitable<Status>; an error is how the stream ends, otherwise `handle` has ended it.
template <class Request, class Handle>
awaitable<void> serve_stream(Exchange& exchange, Handle handle) {
    const std::optional<Encoding> encoding = stream_encoding(exchange.head.headers.get("Content-Type"));
    if (!encoding) {
        co_await refuse_content_type(exchange);
        co_return;
    }
    StreamWriter writer(exchange, *encoding);
    MessageReader reader(exchange, *encoding);
    Request request;
    Status status = co_await reader.only(request);
    if (status) status = co_await handle(writer, std::as_const(request));
    if (!status) co_await writer.end(std::move(status));
}

// Connect-Timeout-Ms; nothing when it is absent, 0 or no number.
std::optional<std::chrono::milliseconds> call_timeout(const http::Headers& headers);
// Keepalive-Ping-Interval in seconds, 90 without one.
std::chrono::seconds keepalive_interval(const http::Headers& headers);

}  // namespace gb::agent
