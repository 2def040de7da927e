// SPDX-License-Identifier: Apache-2.0
// One question to one server, and its answer. For upstream.cc.
#pragma once

#include <chrono>
#include <functional>

#include "egress/upstream.h"

namespace gb::egress {

// Ends an exchange from outside: closes the socket that it is using at the time.
class Cut {
  public:
    void now() {
        done_ = true;
        if (close_) close_();
    }
    [[nodiscard]] bool done() const { return done_; }
    void set(std::function<void()> close) { close_ = std::move(close); }

  private:
    bool done_ = false;
    std::function<void()> close_;
};

// From a fresh socket, connected, so that only what this server sends is received. What is no answer to the
// question is passed over; after 16 of that somebody is guessing, and the result is `truncated`, so that TCP
// is used, where guessing is hopeless. Errors as Upstream::ask().
awaitable<Result<DnsAnswer>> ask_over_udp(DnsEndpoint server, const DnsQuestion& question, bool with_edns,
                                          std::chrono::steady_clock::time_point until, Cut& cut);
awaitable<Result<DnsAnswer>> ask_over_tcp(DnsEndpoint server, const DnsQuestion& question,
                                          std::chrono::steady_clock::time_point until, Cut& cut);

}  // namespace gb::egress
