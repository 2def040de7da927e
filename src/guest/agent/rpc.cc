// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/rpc.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include "base/error_table.h"
#include "guest/agent/gzip.h"
#include "guest/agent/http_values.h"
#include "guest/agent/reply.h"

namespace gb::agent {
namespace {

constexpr std::size_t kWorthPacking = 1024;

constexpr std::string_view json_name(bool stream) {
    return stream ? "application/connect+json" : "application/json";
}

constexpr std::string_view binary_name(bool stream) {
    return stream ? "application/connect+proto" : "application/proto";
}

std::optional<Encoding> encoding_of(std::string_view content_type, bool stream) {
    const std::string value = parse_header_value(content_type).value;
    if (value == json_name(stream)) return Encoding::json;
    if (value == binary_name(stream)) return Encoding::binary;
    return std::nullopt;
}

std::string content_type(Encoding encoding, bool stream) {
    return std::string(encoding == Encoding::json ? json_name(stream) : binary_name(stream));
}

template <class Number>
Number number_or(std::string_view text, Number otherwise) {
    Number value{};
    auto [stop, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
    return ec == std::errc{} && stop == text.data() + text.size() ? value : otherwise;
}

}  // namespace

Status decode_message(Encoding encoding, std::string_view bytes, google::protobuf::Message& message) {
    if (encoding == Encoding::binary) {
        if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return {};
        return fail(ErrorCode::invalid_argument,
                    fmt::format("request is not a {} message", message.GetDescriptor()->full_name()));
    }
    if (bytes.empty()) return {};  // a message without any field
    google::protobuf::util::JsonParseOptions options;
    options.ignore_unknown_fields = true;
    const auto status = google::protobuf::util::JsonStringToMessage(
        google::protobuf::StringPiece(bytes.data(), bytes.size()), &message, options);
    if (status.ok()) return {};
    return fail(ErrorCode::invalid_argument,
                fmt::format("request is not a {}: {}", message.GetDescriptor()->full_name(),
                            std::string(status.message())));
}

std::string encode_message(Encoding encoding, const google::protobuf::Message& message) {
    std::string out;
    if (encoding == Encoding::json)
        (void)google::protobuf::util::MessageToJsonString(message, &out);
    else
        message.SerializeToString(&out);
    return out;
}

std::optional<Encoding> unary_encoding(std::string_view content_type) {
    return encoding_of(content_type, false);
}

std::optional<Encoding> stream_encoding(std::string_view content_type) {
    return encoding_of(content_type, true);
}

awaitable<void> refuse_content_type(Exchange& exchange) {
    http::Headers headers = reply_headers(exchange);
    headers.add("Accept-Post",
                "application/json, application/proto, application/connect+json, "
                "application/connect+proto");
    co_await exchange.response.send(415, std::move(headers), {});
}

awaitable<Status> read_unary(Exchange& exchange, Encoding encoding, google::protobuf::Message& request) {
    Result<std::string> whole = co_await exchange.body.read_all(kMaxMessage);
    if (!whole) {
        co_await discard_body(exchange);
        co_return std::unexpected(whole.error());
    }
    std::string body = *std::move(whole);
    const std::string_view coding = exchange.head.headers.get("Content-Encoding");
    if (coding == "gzip") {
        // "Servers must not attempt to decompress zero-length HTTP request content."
        if (!body.empty()) {
            GB_CO_TRY_ASSIGN(body, gunzip(body, kMaxMessage));
        }
    } else if (!coding.empty() && coding != "identity") {
        co_return fail(ErrorCode::unimplemented,
                       fmt::format("content encoding '{}' is not supported", coding));
    }
    co_return decode_message(encoding, body, request);
}

awaitable<void> answer_unary(Exchange& exchange, Encoding encoding,
                             const google::protobuf::Message& response) {
    http::Headers headers = reply_headers(exchange, content_type(encoding, false));
    headers.add("Vary", "Accept-Encoding");
    std::string body = encode_message(encoding, response);
    if (body.size() >= kWorthPacking &&
        accepts_coding(exchange.head.headers.get("Accept-Encoding"), "gzip")) {
        headers.add("Content-Encoding", "gzip");
        body = gzip(body);
    }
    co_await exchange.response.send(200, std::move(headers), body);
}

awaitable<void> answer_unary_error(Exchange& exchange, const Error& error) {
    const std::string body = http::connect_error_body(error);
    co_await reply_json(exchange, http_status(error.code), body);
}

Result<std::string> unpack_frame(http::EnvelopeReader::Frame frame, std::string_view coding,
                                 std::size_t limit) {
    if ((frame.flags & ~http::kEnvelopeCompressed) != 0)
        return fail(ErrorCode::invalid_argument, fmt::format("invalid envelope flags {}", frame.flags));
    if (frame.flags == 0) return std::move(frame.payload);
    if (coding != "gzip")
        return fail(ErrorCode::internal, "compressed message without Connect-Content-Encoding: gzip");
    if (frame.payload.empty()) return std::string();  // nothing is not compressed, whatever the flag says
    return gunzip(frame.payload, limit);
}

awaitable<Result<bool>> MessageReader::next(google::protobuf::Message& message) {
    for (;;) {
        GB_CO_TRY_ASSIGN(auto frame, frames_.next());
        if (frame) {
            const std::string_view coding = exchange_.head.headers.get("Connect-Content-Encoding");
            GB_CO_TRY_ASSIGN(const std::string bytes, unpack_frame(*std::move(frame), coding, kMaxMessage));
            GB_CO_TRY(decode_message(encoding_, bytes, message));
            co_return true;
        }
        GB_CO_TRY_ASSIGN(const std::string_view piece, co_await exchange_.body.next());
        if (piece.empty()) {
            if (frames_.empty()) co_return false;
            co_return fail(ErrorCode::invalid_argument, "the request ends inside of a message");
        }
        frames_.feed(piece);
    }
}

awaitable<Status> MessageReader::only(google::protobuf::Message& message) {
    const Result<bool> found = co_await next(message);
    if (!found) {
        co_await discard_body(exchange_);
        co_return std::unexpected(found.error());
    }
    if (!*found) co_return fail(ErrorCode::invalid_argument, "the request holds no message");
    for (;;) {
        GB_CO_TRY_ASSIGN(const std::string_view rest, co_await exchange_.body.next());
        if (rest.empty()) co_return Status{};
    }
}

awaitable<void> refuse_method(Exchange& exchange) {
    const Error error(ErrorCode::unimplemented, fmt::format("{} is not implemented", exchange.target.path));
    const std::string_view type = exchange.head.headers.get("Content-Type");
    if (const auto encoding = stream_encoding(type)) {
        StreamWriter writer(exchange, *encoding);
        co_await writer.end(std::unexpected(error));
    } else {
        co_await answer_unary_error(exchange, error);
    }
}

StreamWriter::StreamWriter(Exchange& exchange, Encoding encoding)
    : exchange_(exchange),
      encoding_(encoding),
      zipped_(accepts_coding(exchange.head.headers.get("Connect-Accept-Encoding"), "gzip")) {}

void StreamWriter::add_frame(std::string& frames, const google::protobuf::Message& message) const {
    add_encoded(frames, encode_message(encoding_, message));
}

void StreamWriter::add_encoded(std::string& frames, std::string_view message) const {
    if (zipped_ && message.size() >= kWorthPacking)
        frames += http::envelope(http::kEnvelopeCompressed, gzip(message));
    else
        frames += http::envelope(0, message);
}

awaitable<Status> StreamWriter::write(std::string_view frames) {
    if (exchange_.response.started()) co_return co_await exchange_.response.write(frames);
    http::Headers headers = reply_headers(exchange_, content_type(encoding_, true));
    headers.add("Cache-Control", "no-store");
    if (zipped_) headers.add("Connect-Content-Encoding", "gzip");
    co_return co_await exchange_.response.start_with(200, std::move(headers), frames);
}

awaitable<Status> StreamWriter::send(const google::protobuf::Message& message) {
    std::string frames;
    add_frame(frames, message);
    co_return co_await write(frames);
}

awaitable<void> StreamWriter::end(Status status, std::string frames) {
    frames += status ? http::end_stream() : http::end_stream(status.error());
    if (exchange_.response.started()) {
        co_await exchange_.response.finish_with(frames);
    } else if (co_await write(frames)) {
        co_await exchange_.response.finish();
    }
}

std::optional<std::chrono::milliseconds> call_timeout(const http::Headers& headers) {
    const auto value = number_or<std::int64_t>(headers.get("Connect-Timeout-Ms"), 0);
    // Ten digits are allowed; more would overflow nothing here, but mean "none" anyway.
    if (value <= 0 || value > 9'999'999'999) return std::nullopt;
    return std::chrono::milliseconds(value);
}

std::chrono::seconds keepalive_interval(const http::Headers& headers) {
    const auto value = number_or<std::int64_t>(headers.get("Keepalive-Ping-Interval"), 0);
    return std::chrono::seconds(value > 0 ? std::min<std::int64_t>(value, 3600) : 90);
}

}  // namespace gb::agent
