// SPDX-License-Identifier: Apache-2.0
// gzip (RFC 1952) as a stream, in constant memory.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gb::agent {

using DataSink = std::function<Status(std::string_view)>;  // gets pieces of at most 64 KiB

class Inflater {
  public:
    Inflater();
    ~Inflater();
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;

    // invalid_argument when `piece` is not gzip; otherwise what the sink says.
    Status feed(std::string_view piece, const DataSink& sink);
    // To be called at the end of the input: invalid_argument when it was cut short.
    Status finish() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

class Deflater {
  public:
    Deflater();
    ~Deflater();
    Deflater(const Deflater&) = delete;
    Deflater& operator=(const Deflater&) = delete;

    std::string feed(std::string_view piece);
    std::string finish();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// A whole message; too_large when it unpacks to more than `limit` bytes.
Result<std::string> gunzip(std::string_view data, std::size_t limit);
std::string gzip(std::string_view data);

}  // namespace gb::agent
