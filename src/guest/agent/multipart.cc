// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/multipart.h"

namespace gb::agent {

MultipartParser::MultipartParser(std::string_view boundary, PartSink& sink)
    // The first delimiter may stand at the very start of the body; a made-up line end in front of the body
    // lets one search find all delimiters alike.
    : delimiter_("\r\n--" + std::string(boundary)), buffer_("\r\n"), sink_(sink) {}

Status MultipartParser::feed(std::string_view piece) {
    if (state_ == State::done) return {};  // an epilogue is allowed and means nothing
    buffer_.append(piece);
    for (;;) {
        GB_TRY_ASSIGN(const bool more, step());
        if (!more) return {};
    }
}

Status MultipartParser::finish() const {
    if (state_ == State::done) return {};
    return fail(ErrorCode::invalid_argument, "multipart body ends without its closing boundary");
}

Result<bool> MultipartParser::step() {
    switch (state_) {
        case State::preamble:
        case State::part_body:
            return scan_body();
        case State::part_headers:
            return read_headers();
        case State::done:
            buffer_.clear();
            return false;
    }
    return false;
}

Status MultipartParser::emit(std::size_t count) {
    if (count == 0) return {};
    if (state_ == State::part_body) GB_TRY(sink_.part_data(std::string_view(buffer_).substr(0, count)));
    buffer_.erase(0, count);
    return {};
}

Result<bool> MultipartParser::scan_body() {
    const std::size_t at = buffer_.find(delimiter_);
    if (at == std::string::npos) {
        // All but what may be the beginning of a delimiter is data.
        const std::size_t keep = std::min(buffer_.size(), delimiter_.size() - 1);
        GB_TRY(emit(buffer_.size() - keep));
        return false;
    }
    GB_TRY(emit(at));
    // Behind a delimiter: "--" ends the body, optional blanks and a line end start the next part.
    std::size_t i = delimiter_.size();
    if (buffer_.size() < i + 2) return false;
    const bool last = buffer_.compare(i, 2, "--") == 0;
    if (!last) {
        while (i < buffer_.size() && (buffer_[i] == ' ' || buffer_[i] == '\t')) ++i;
        if (i > delimiter_.size() + 256)
            return fail(ErrorCode::invalid_argument, "multipart boundary line too long");
        if (buffer_.size() < i + 2) return false;
        if (buffer_.compare(i, 2, "\r\n") != 0) {
            // A longer word that only starts like the boundary: data.
            GB_TRY(emit(2));
            return true;
        }
    }
    if (state_ == State::part_body) GB_TRY(sink_.end_part());
    state_ = last ? State::done : State::part_headers;
    // The line end stays in front, so that a part without headers is an empty line too.
    buffer_.erase(0, i);
    return true;
}

Result<bool> MultipartParser::read_headers() {
    const std::size_t end = buffer_.find("\r\n\r\n");
    // The same limit whether or not the end has arrived already: three of the bytes may be the beginning of it.
    if (std::min(end, buffer_.size()) > kMaxPartHeader + (end == std::string::npos ? 3 : 0))
        return fail(ErrorCode::too_large, "headers of a part are too long");
    if (end == std::string::npos) return false;
    HeaderValue disposition;
    std::string_view lines = std::string_view(buffer_).substr(0, end);
    while (!lines.empty()) {
        lines.remove_prefix(std::min<std::size_t>(2, lines.size()));  // the line end in front
        const std::size_t stop = std::min(lines.size(), lines.find("\r\n"));
        const std::string_view line = lines.substr(0, stop);
        lines.remove_prefix(stop);
        const std::size_t colon = line.find(':');
        if (colon != std::string_view::npos && http::iequals(line.substr(0, colon), "content-disposition"))
            disposition = parse_header_value(line.substr(colon + 1));
    }
    buffer_.erase(0, end + 4);
    state_ = State::part_body;
    GB_TRY(sink_.begin_part(disposition));
    return true;
}

}  // namespace gb::agent
