// SPDX-License-Identifier: Apache-2.0
// glovebox-probe PATIENCE_MS PROBE…: makes every attempt and prints a line for each. Runs in a sandbox.
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <signal.h>

#include "probe/probe.h"

int main(int argc, char** argv) {
    ::signal(SIGPIPE, SIG_IGN);
    std::vector<gb::probe::Probe> probes;
    for (int i = 2; i < argc; ++i) {
        auto probe = gb::probe::parse_probe(argv[i]);
        if (!probe) {
            fmt::print(stderr, "glovebox-probe: {}\n", probe.error().message);
            return 2;
        }
        probes.push_back(*std::move(probe));
    }
    const int patience = argc > 1 ? std::atoi(argv[1]) : 0;
    if (patience <= 0 || probes.empty()) {
        fmt::print(stderr, "usage: glovebox-probe PATIENCE_MS PROBE...\n");
        return 2;
    }
    const auto outcomes = gb::probe::attempt_all(probes, std::chrono::milliseconds(patience));
    for (std::size_t i = 0; i < outcomes.size(); ++i)
        fmt::print("{}\n", gb::probe::format_outcome(i, outcomes[i]));
    return 0;
}
