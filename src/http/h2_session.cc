// SPDX-License-Identifier: Apache-2.0
#include "http/h2_session.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include "http/h2_stream.h"

namespace gb::http::detail {
namespace {

constexpr std::size_t kOutput = std::size_t{64} * 1024;
constexpr std::size_t kMaxAnswerHead = std::size_t{512} * 1024;

std::string_view view(nghttp2_rcbuf* buffer) {
    const nghttp2_vec v = nghttp2_rcbuf_get_buf(buffer);
    return {reinterpret_cast<const char*>(v.base), v.len};
}

// RFC 9113 8.2.2: they speak of a connection of HTTP/1.1.
bool of_connection(std::string_view name) {
    constexpr std::array<std::string_view, 5> kNames{"connection", "keep-alive", "proxy-connection",
                                                     "transfer-encoding", "upgrade"};
    return std::ranges::find(kNames, name) != kNames.end();
}

std::string lower(std::string_view name) {
    std::string out(name);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

// RFC 9113 8.2.1: no end of a line inside, no blanks around.
std::string clean(std::string_view text) {
    std::string out(text);
    std::erase_if(out, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
    constexpr std::string_view kBlank = " \t";
    out.erase(0, std::min(out.find_first_not_of(kBlank), out.size()));
    out.erase(out.find_last_not_of(kBlank) + 1);
    return out;
}

nghttp2_nv pair(const std::string& name, const std::string& value) {
    auto bytes = [](const std::string& s) {
        return const_cast<std::uint8_t*>(
            reinterpret_cast<const std::uint8_t*>(s.data()));  // copied by nghttp2
    };
    return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

bool ends_stream(const nghttp2_frame* frame) {
    return (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
           (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
}

bool begins_request(const nghttp2_frame* frame) {
    return frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
}

}  // namespace

// What nghttp2 tells. It must not be asked to read or write from in here; queueing frames is allowed.
struct H2Callbacks {
    static H2Session& session(void* user) { return *static_cast<H2Session*>(user); }

    static int begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) {
        H2Session& self = session(user);
        self.head_open_ = true;
        if (!begins_request(frame)) return 0;  // trailers
        const std::int32_t id = frame->hd.stream_id;
        // Handlers of requests that were reset need a moment to notice.
        if (self.serving_.size() + self.ready_.size() >= std::size_t{2} * self.limits_.max_concurrent_streams) {
            self.reset(id, NGHTTP2_REFUSED_STREAM);
            return 0;
        }
        self.streams_.emplace(id, std::make_shared<H2Stream>(self, id, self.executor_));
        return 0;
    }

    static int header(nghttp2_session*, const nghttp2_frame* frame, nghttp2_rcbuf* name_bytes,
                      nghttp2_rcbuf* value_bytes, std::uint8_t, void* user) {
        H2Session& self = session(user);
        H2Stream* stream = self.find(frame->hd.stream_id);
        if (stream == nullptr || !begins_request(frame)) return 0;
        const std::string_view name = view(name_bytes), value = view(value_bytes);
        stream->header_bytes_ += name.size() + value.size() + 32;
        // It could unpack to any size; told in a proper answer up to a point.
        if (stream->header_bytes_ > 16 * self.limits_.max_header_bytes) return NGHTTP2_ERR_CALLBACK_FAILURE;
        stream->head_too_large_ |= stream->header_bytes_ > self.limits_.max_header_bytes;
        RequestHead& head = stream->head_;
        if (name == ":method")
            head.method = value;
        else if (name == ":path")
            head.target = value;
        else if (name == ":authority")
            stream->authority_ = value;
        else if (!name.starts_with(':') && !stream->head_too_large_)
            add_header(head.headers, name, value);
        return 0;
    }

    static void add_header(Headers& headers, std::string_view name, std::string_view value) {
        // RFC 9113 8.2.3: cookies may come one by one, and are one header to everybody else.
        const std::string* cookies = name == "cookie" ? headers.find(name) : nullptr;
        if (cookies != nullptr)
            headers.set(name, fmt::format("{}; {}", *cookies, value));
        else
            headers.add(std::string(name), std::string(value));
    }

    // nghttp2 would leave the header out: what a stranger meant by it is not ours to guess.
    static int invalid_header(nghttp2_session*, const nghttp2_frame*, nghttp2_rcbuf*, nghttp2_rcbuf*,
                              std::uint8_t, void*) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }

    static int frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
        H2Session& self = session(user);
        self.greeted_ = true;
        if (frame->hd.type == NGHTTP2_HEADERS) self.head_open_ = false;
        if (frame->hd.type == NGHTTP2_RST_STREAM) self.count_reset();
        auto found = self.streams_.find(frame->hd.stream_id);
        if (found == self.streams_.end()) return 0;
        const std::shared_ptr<H2Stream> stream = found->second;
        if (begins_request(frame)) {
            if (self.complete_head(*stream, ends_stream(frame)))
                self.ready_.push_back(stream);
            else
                self.reset(frame->hd.stream_id, NGHTTP2_PROTOCOL_ERROR);
        }
        if (ends_stream(frame)) stream->end_body();
        return 0;
    }

    static int invalid_frame(nghttp2_session*, const nghttp2_frame* frame, int, void* user) {
        if (frame->hd.type == NGHTTP2_HEADERS) session(user).head_open_ = false;
        return 0;
    }

    static int data(nghttp2_session* nghttp2, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                    std::size_t size, void* user) {
        nghttp2_session_consume_connection(nghttp2, size);
        if (H2Stream* stream = session(user).find(id))
            stream->add_body({reinterpret_cast<const char*>(bytes), size});
        return 0;
    }

    static int sent(nghttp2_session*, const nghttp2_frame* frame, void* user) {
        H2Session& self = session(user);
        H2Stream* stream = self.find(frame->hd.stream_id);
        if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR &&
            (stream == nullptr || !stream->cut_))
            self.count_reset();  // the client made us
        if (stream != nullptr && ends_stream(frame)) {
            stream->answered_ = true;
            // RFC 9113 8.1: the rest of the request is not wanted.
            if (stream->served_ && !stream->body_ended_) self.reset(frame->hd.stream_id, NGHTTP2_NO_ERROR);
        }
        return 0;
    }

    static int not_sent(nghttp2_session*, const nghttp2_frame* frame, int, void* user) {
        // An answer whose head is larger than any client would take must not leave its client waiting.
        if (frame->hd.type == NGHTTP2_HEADERS)
            session(user).reset(frame->hd.stream_id, NGHTTP2_INTERNAL_ERROR);
        return 0;
    }

    static int closed(nghttp2_session*, std::int32_t id, std::uint32_t, void* user) {
        H2Session& self = session(user);
        auto found = self.streams_.find(id);
        if (found == self.streams_.end()) return 0;
        const std::shared_ptr<H2Stream> stream = std::move(found->second);
        self.streams_.erase(found);
        stream->on_closed();
        return 0;
    }

    static ssize_t body(nghttp2_session*, std::int32_t, std::uint8_t* room, std::size_t size,
                        std::uint32_t* flags, nghttp2_data_source* source, void*) {
        bool end = false;
        const std::size_t n =
            static_cast<H2Stream*>(source->ptr)->give(reinterpret_cast<char*>(room), size, end);
        if (end)
            *flags |= NGHTTP2_DATA_FLAG_EOF;
        else if (n == 0)
            return NGHTTP2_ERR_DEFERRED;
        return static_cast<ssize_t>(n);
    }

    static nghttp2_session* make(H2Session& self) {
        nghttp2_session_callbacks* callbacks = nullptr;
        nghttp2_option* option = nullptr;
        nghttp2_session* made = nullptr;
        if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0)
            throw std::bad_alloc();
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_headers);
        nghttp2_session_callbacks_set_on_header_callback2(callbacks, header);
        nghttp2_session_callbacks_set_on_invalid_header_callback2(callbacks, invalid_header);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame);
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, invalid_frame);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data);
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, sent);
        nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, not_sent);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, closed);
        nghttp2_option_set_no_auto_window_update(option, 1);
        nghttp2_option_set_no_closed_streams(option, 1);
        nghttp2_option_set_max_send_header_block_length(option, kMaxAnswerHead);
        const int made_ok = nghttp2_session_server_new2(&made, callbacks, &self, option);
        nghttp2_option_del(option);
        nghttp2_session_callbacks_del(callbacks);
        if (made_ok != 0) throw std::bad_alloc();
        return made;
    }
};

void H2Session::Freer::operator()(nghttp2_session* session) const {
    nghttp2_session_del(session);
}

H2Session::H2Session(boost::asio::any_io_executor executor, H2Limits limits, OnRequest on_request,
                     std::function<void()> wake)
    : executor_(std::move(executor)),
      limits_(limits),
      on_request_(std::move(on_request)),
      wake_(std::move(wake)),
      session_(H2Callbacks::make(*this)),
      resets_left_(limits.resets_at_once),
      resets_counted_(std::chrono::steady_clock::now()) {
    const std::array<nghttp2_settings_entry, 3> settings{
        {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits_.max_concurrent_streams},
         {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits_.stream_window},
         {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(limits_.max_header_bytes)}}};
    nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, settings.data(), settings.size());
    nghttp2_session_set_local_window_size(session_.get(), NGHTTP2_FLAG_NONE, 0,
                                          static_cast<std::int32_t>(limits_.connection_window));
}

H2Session::~H2Session() {
    close();
}

Status H2Session::receive(std::string_view bytes) {
    if (closed_) return fail(ErrorCode::unavailable, "HTTP/2 connection is closed");
    const ssize_t n = nghttp2_session_mem_recv(
        session_.get(), reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    if (n < 0) {
        failed_ = true;
        return fail(ErrorCode::invalid_argument,
                    fmt::format("HTTP/2: {}", nghttp2_strerror(static_cast<int>(n))));
    }
    for (auto& stream : std::exchange(ready_, {})) {
        if (stream->closed_ || closed_) continue;  // reset before anybody has begun
        serving_.emplace(stream->id_, stream);
        on_request_(std::move(stream));
    }
    return {};
}

std::string_view H2Session::output() {
    out_.clear();
    while (!closed_ && !failed_ && out_.size() < kOutput) {
        const std::uint8_t* bytes = nullptr;
        const ssize_t n = nghttp2_session_mem_send(session_.get(), &bytes);
        failed_ = n < 0;
        if (n <= 0) break;
        out_.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
    }
    return out_;
}

void H2Session::terminate() {
    if (closed_) return;
    nghttp2_session_terminate_session(session_.get(), NGHTTP2_NO_ERROR);
    wake();
}

bool H2Session::ending() const {
    return closed_ || failed_ || nghttp2_session_want_read(session_.get()) == 0;
}

bool H2Session::over() const {
    return closed_ || failed_ || (ending() && nghttp2_session_want_write(session_.get()) == 0);
}

void H2Session::close() {
    closed_ = true;
    on_request_ = nullptr;
    wake_ = nullptr;
    ready_.clear();
    for (auto& [id, stream] : std::exchange(streams_, {})) stream->on_closed();
    for (auto& [id, stream] : serving_) stream->on_gone();
}

void H2Session::end_request(H2Stream& stream) {
    serving_.erase(stream.id_);
    stream.served_ = true;
    stream.incoming_ = {};
    // Otherwise when the end of the answer is sent.
    if (stream.answered_ && !stream.body_ended_ && !stream.closed_) reset(stream.id_, NGHTTP2_NO_ERROR);
    wake();  // it may have been the last
}

Status H2Session::respond(H2Stream& stream, int status, const Headers& headers, bool with_body) {
    std::vector<std::pair<std::string, std::string>> fields{{":status", std::to_string(status)}};
    for (const auto& [name, value] : headers.items()) {
        std::string key = lower(name);
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(key.data());
        if (of_connection(key) || key.starts_with(':') || nghttp2_check_header_name(bytes, key.size()) == 0)
            continue;
        fields.emplace_back(std::move(key), clean(value));
    }
    std::vector<nghttp2_nv> list;
    list.reserve(fields.size());
    for (const auto& [name, value] : fields) list.push_back(pair(name, value));
    nghttp2_data_provider provider{.source = {.ptr = &stream}, .read_callback = H2Callbacks::body};
    if (const int error = nghttp2_submit_response(session_.get(), stream.id_, list.data(), list.size(),
                                                  with_body ? &provider : nullptr);
        error != 0)
        return fail(ErrorCode::internal, fmt::format("HTTP/2 answer: {}", nghttp2_strerror(error)));
    wake();
    return {};
}

void H2Session::say_continue(std::int32_t id) {
    const std::string name = ":status", value = "100";
    const nghttp2_nv status = pair(name, value);
    nghttp2_submit_headers(session_.get(), NGHTTP2_FLAG_NONE, id, nullptr, &status, 1, nullptr);
    wake();
}

void H2Session::resume(std::int32_t id) {
    nghttp2_session_resume_data(session_.get(), id);  // no error when the data was not waited for
    wake();
}

void H2Session::consumed(std::int32_t id, std::size_t bytes) {
    nghttp2_session_consume_stream(session_.get(), id, bytes);
    wake();
}

void H2Session::reset(std::int32_t id, std::uint32_t error_code) {
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, error_code);
    wake();
}

H2Stream* H2Session::find(std::int32_t id) {
    auto found = streams_.find(id);
    return found == streams_.end() ? nullptr : found->second.get();
}

// Makes of it what HTTP/1.1 would have said. False when it contradicts itself.
bool H2Session::complete_head(H2Stream& stream, bool ended) {
    RequestHead& head = stream.head_;
    if (const std::string* host = head.headers.find("host")) {
        // RFC 9113 8.3.1: two names for the same thing could be read as two sandboxes.
        if (!stream.authority_.empty() && !iequals(*host, stream.authority_)) return false;
    } else if (!stream.authority_.empty()) {
        head.headers.add("host", stream.authority_);
    }
    if (head.method == "CONNECT") head.target = stream.authority_;
    if (!ended && !head.headers.has("content-length")) head.headers.add("transfer-encoding", "chunked");
    return true;
}

void H2Session::count_reset() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - resets_counted_).count();
    resets_counted_ = now;
    resets_left_ =
        std::min<double>(limits_.resets_at_once, resets_left_ + seconds * limits_.resets_per_second);
    if (--resets_left_ < 0) nghttp2_session_terminate_session(session_.get(), NGHTTP2_ENHANCE_YOUR_CALM);
}

void H2Session::wake() {
    if (wake_) wake_();
}

}  // namespace gb::http::detail
