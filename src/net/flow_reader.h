// SPDX-License-Identifier: Apache-2.0
// Ends of connections with the bytes that they carried, from the kernel's connection tracking.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/decision.h"

namespace gb::net {

class FlowReader {
  public:
    // For the namespace that the calling thread is in; holds it alive.
    static Result<FlowReader> open();
    // What connections there that have not ended have carried so far.
    static Result<std::vector<Decision>> open_flows();
    static Result<std::vector<Decision>> open_tcp_flows();  // that neither end has closed

    [[nodiscard]] int fd() const { return fd_.get(); }  // readable when ends wait
    std::vector<Decision> read(std::size_t most);       // never blocks

  private:
    explicit FlowReader(UniqueFd fd);
    UniqueFd fd_;
    std::vector<char> buffer_;
};

}  // namespace gb::net
