// SPDX-License-Identifier: Apache-2.0
// One attempt to deliver an event: a POST by libcurl (contract 7.10). Blocking; any number of threads at
// once.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "store/records.h"

namespace gb {

struct WebhookSenderOptions {
    bool allow_private = false;  // whether it may go to addresses that are not of the public internet
    std::chrono::milliseconds connect_timeout{5'000};  // resolving the name included
    std::chrono::milliseconds timeout{10'000};         // of the whole attempt
    std::string ca_file;                               // PEM; empty: the authorities that the system trusts
};

struct Attempt {
    enum class Result {
        delivered,  // any 2xx; the body of the answer does not matter
        failed,
        stopped,  // by stop(): nothing is known
    } result = Result::failed;
    int status = 0;      // 0: no answer
    std::string reason;  // of a failure; holds neither URL nor secret
};

class WebhookSender {
  public:
    explicit WebhookSender(WebhookSenderOptions options);
    WebhookSender(const WebhookSender&) = delete;
    WebhookSender& operator=(const WebhookSender&) = delete;

    // Redirects are not followed, no proxy is used, TLS is verified. Whether an address is public is asked of
    // the one that is connected to, after the name was resolved: a name that changes its mind gains nothing.
    Attempt send(const Delivery& delivery) const;
    // Ends what is being sent within about a second; later attempts end at once.
    void stop() { stopping_ = true; }

  private:
    WebhookSenderOptions options_;
    std::atomic<bool> stopping_ = false;
};

}  // namespace gb
