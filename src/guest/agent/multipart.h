// SPDX-License-Identifier: Apache-2.0
// Takes a multipart/form-data body (RFC 7578) apart while it arrives, in constant memory. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "guest/agent/http_values.h"

namespace gb::agent {

// Receives the parts in order. An error stops the parser, which then returns it from feed().
class PartSink {
  public:
    virtual ~PartSink() = default;
    virtual Status begin_part(const HeaderValue& disposition) = 0;
    virtual Status part_data(std::string_view data) = 0;  // never empty
    virtual Status end_part() = 0;
};

class MultipartParser {
  public:
    // `boundary` as in the Content-Type, without the leading dashes. The sink must outlive the parser.
    MultipartParser(std::string_view boundary, PartSink& sink);

    Status feed(std::string_view piece);
    // To be called at the end of the body: invalid_argument when the closing delimiter has not been seen.
    Status finish() const;

    static constexpr std::size_t kMaxPartHeader = 64 * 1024;

  private:
    enum class State { preamble, part_headers, part_body, done };

    Result<bool> step();  // false when more bytes are needed
    Result<bool> scan_body();
    Result<bool> read_headers();
    Status emit(std::size_t count);  // the first bytes of the buffer are data (or preamble)

    std::string delimiter_;  // CR LF "--" boundary
    std::string buffer_;
    State state_ = State::preamble;
    PartSink& sink_;
};

}  // namespace gb::agent
