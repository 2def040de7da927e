// SPDX-License-Identifier: Apache-2.0
// The guest's trust store, in the places where programs look for it: bundles of certificates, OpenSSL's
// folder, and the folder of local certificates from which update-ca-certificates makes all of them anew.
// Blocking. The files are the guest's: what somebody else wrote into them stays, and links are followed only
// within /etc and /usr.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "guest/agent/trust_bundle.h"

namespace gb::agent {

// One apply() at a time, from any thread.
class TrustStore {
  public:
    struct Outcome {
        bool trusted = false;  // the authority is in the bundle that kTrustBundle names
        Status status;         // the first thing that failed; the others were done
    };

    // `root`: the folder in which the guest's /etc and /usr are.
    explicit TrustStore(std::filesystem::path root) : root_(std::move(root)) {}

    // Makes `authority` the one that is trusted, or none, in place of any that was here before, by whomever:
    // a fork finds its parent's on its disk. Files that are right already are not written.
    Outcome apply(const Authority& authority);

  private:
    std::filesystem::path root_;
    std::vector<std::string> known_;  // PEM of those that may be somewhere still
};

}  // namespace gb::agent
