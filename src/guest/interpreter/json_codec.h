// SPDX-License-Identifier: Apache-2.0
// The language of our own kernels for JavaScript and Java: one JSON object in a line, each way. Pure.
//
//   to the kernel   {"id","type":"execute","code","count","language"} or {"id","type":<function>,"argument"}
//   from it         {"type":"ready"}, then for each request any number of
//                   {"id","type":"display_data" | "execute_result" | "error","content"} with the content of
//                   the Jupyter messages of that name, and one
//                   {"id","type":"reply","content":{"status","exit"?}}
#pragma once

#include "guest/interpreter/pipe_codec.h"

namespace gb::interpreter {

class JsonCodec : public PipeCodec {
  public:
    // Java's println writes a line and its end one after the other; clients have come to expect two messages.
    enum class LineFeeds { together, apart };
    explicit JsonCodec(LineFeeds line_feeds = LineFeeds::together) : line_feeds_(line_feeds) {}

    Result<std::string> encode(const PipeRequest& request) override;
    Result<PipeAnswer> decode(std::string_view line) override;
    [[nodiscard]] bool exit_ends_cell() const override { return false; }
    [[nodiscard]] bool interruptible_at_once() const override { return true; }
    [[nodiscard]] bool line_feeds_apart() const override { return line_feeds_ == LineFeeds::apart; }

  private:
    LineFeeds line_feeds_;
};

}  // namespace gb::interpreter
