// SPDX-License-Identifier: Apache-2.0
// The wait of a template's build for its start command to be ready: as long as something moves, whatever the machine.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/stall.h"
#include "node/agent_client.h"

namespace gb {

// What the interpreter starts, from the answer of its /health while it is not ready.
struct StartupNews {
    std::string text;     // for a person: "python ready, r being started, java waits"
    double fraction = 0;  // how many of all are ready
};
// Pure. Nothing when it is not such an answer.
std::optional<StartupNews> parse_startup(std::string_view health);

struct ReadyWait {
    std::string command;               // ends with 0 once all is ready; empty: at once
    Patience patience;                 // of the whole
    Signs signs;                       // of the machine
    bool interpreter = false;          // the guest has one, whose /health tells what it is doing
    const RunningCommand* started = nullptr;  // the start command, where there is one
    // Called a few times a second. `fraction` of this wait, as far as anybody knows.
    std::function<void(const std::string& detail, double fraction)> say;
};

// deadline_exceeded: nothing moved, or the ceiling was reached; the text says how far everything came.
// failed_precondition: the start command has ended with an error.
Status wait_until_ready(const AgentClient& agent, const ReadyWait& wait);

}  // namespace gb
