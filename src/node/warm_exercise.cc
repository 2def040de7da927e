// SPDX-License-Identifier: Apache-2.0
#include "node/warm_exercise.h"

#include <functional>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/ids.h"

namespace gb {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr Patience kLimit{15s, 10min};  // of one step

std::unexpected<Error> unexpected_answer(std::string_view what) {
    return fail(ErrorCode::internal, fmt::format("{}: not the answer that was expected", what));
}

Status take_identity(const AgentClient& agent, const Manifest& manifest) {
    GuestIdentity identity;
    identity.sandbox_id = "warm";
    identity.template_id = manifest.info.id;
    identity.default_user = manifest.default_user;
    identity.workdir = manifest.workdir;
    identity.env_vars = manifest.env;
    return agent.init(identity, kLimit);
}

Status run_command(const AgentClient& agent, const Manifest& manifest) {
    GB_TRY_ASSIGN(const CommandResult result, agent.run("true", manifest.default_user, kLimit));
    return result.exit_code == 0 ? Status() : unexpected_answer("a command");
}

Status use_file(const AgentClient& agent) {
    const std::string name = random_id(20), path = "/tmp/" + name, query = "/files?path=" + path;
    GB_TRY(agent.request(kAgentPort, "POST", query, name, kLimit, "application/octet-stream"));
    auto read = agent.request(kAgentPort, "GET", query, "", kLimit);
    // Whatever was read: the file must not stay.
    GB_TRY(agent.request(kAgentPort, "POST", "/filesystem.Filesystem/Remove",
                         json::serialize(json::object{{"path", path}}), kLimit));
    if (!read) return std::unexpected(read.error());
    return *read == name ? Status() : unexpected_answer("a file");
}

Status ask(const AgentClient& agent, std::uint16_t port, const char* path) {
    auto answer = agent.request(port, "GET", path, "", kLimit);
    return answer ? Status() : std::unexpected(answer.error());
}

// Cells that nobody counts nor remembers, and yet everything is used: the way there and back, and, for the
// sake of the new generation, hidden code that is compiled and run. IPython would remember a value, so its
// cell is empty.
constexpr const char* kCells[] = {R"({"code":" "})",
                                  R"({"code":"1 + 1","language":"javascript","store_history":false})"};

Status run_cell(const AgentClient& agent, const char* cell) {
    GB_TRY_ASSIGN(const std::string answer,
                  agent.request(kInterpreterPort, "POST", "/execute", cell, kLimit));
    const bool ended = answer.find("end_of_execution") != std::string::npos;
    return ended && answer.find(R"("error")") == std::string::npos ? Status() : unexpected_answer("a cell");
}

}  // namespace

Status exercise_guest(const AgentClient& agent, const Manifest& manifest, const std::stop_token& over) {
    std::vector<std::function<Status()>> steps{
        [&] { return take_identity(agent, manifest); },
        [&] { return ask(agent, kAgentPort, "/health"); },
        [&] { return run_command(agent, manifest); },
        [&] { return use_file(agent); },
        [&] { return ask(agent, kAgentPort, "/telemetry?after=0"); },
    };
    if (manifest.start_cmd.find("glovebox-interpreter") != std::string::npos) {
        steps.emplace_back([&] { return ask(agent, kInterpreterPort, "/health"); });
        for (const char* cell : kCells)
            if (cell == kCells[0] || manifest.start_cmd.find("javascript") != std::string::npos)
                steps.emplace_back([&agent, cell] { return run_cell(agent, cell); });
    }
    for (const auto& step : steps) {
        if (over.stop_requested())
            return fail(ErrorCode::canceled, "the exercise of a warm sandbox was given up");
        GB_TRY(step());
    }
    return {};
}

}  // namespace gb
