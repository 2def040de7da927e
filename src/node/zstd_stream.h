// SPDX-License-Identifier: Apache-2.0
// One zstd stream, compressed or read in pieces. Wraps libzstd.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gb {

using ByteSink = std::function<Status(std::string_view bytes)>;

class ZstdWriter {
  public:
    // Compresses on as many threads as the machine has processors, where the library can.
    ZstdWriter(int level, ByteSink sink);
    ~ZstdWriter();
    ZstdWriter(const ZstdWriter&) = delete;
    ZstdWriter& operator=(const ZstdWriter&) = delete;

    Status write(std::string_view bytes);
    Status finish();  // the end of the stream

  private:
    struct State;
    Status run(std::string_view bytes, int directive);
    std::unique_ptr<State> state_;
    ByteSink sink_;
};

class ZstdReader {
  public:
    explicit ZstdReader(ByteSink sink);
    ~ZstdReader();
    ZstdReader(const ZstdReader&) = delete;
    ZstdReader& operator=(const ZstdReader&) = delete;

    // data_loss when it is no zstd stream, when more than one stream comes, or when it wants more than 64 MiB
    // to be read.
    Status feed(std::string_view bytes);
    [[nodiscard]] bool complete() const { return ended_; }

  private:
    struct State;
    std::unique_ptr<State> state_;
    ByteSink sink_;
    bool ended_ = false;
};

}  // namespace gb
