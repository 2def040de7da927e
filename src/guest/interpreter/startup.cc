// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/startup.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/log.h"

namespace gb::interpreter {
namespace {

std::string_view state_name(Startup::State state) {
    using enum Startup::State;
    switch (state) {
        case waits:
            return "waits";
        case starting:
            return "starting";
        case ready:
            return "ready";
        case failed:
            break;
    }
    return "failed";
}

}  // namespace

Startup::Step* Startup::find(std::string_view name) {
    auto found = std::ranges::find(steps_, name, &Step::name);
    return found == steps_.end() ? nullptr : &*found;
}

void Startup::plan(std::string name) {
    if (find(name) == nullptr) steps_.push_back({.name = std::move(name), .why = {}});
}

void Startup::begin(std::string_view name) {
    if (Step* step = find(name); step != nullptr && step->state == State::waits) {
        step->state = State::starting;
        step->begun = clock_();
    }
}

void Startup::ready(std::string_view name) {
    if (Step* step = find(name)) {
        step->state = State::ready;
        step->ended = clock_();
        step->why.clear();
    }
}

void Startup::failed(std::string_view name, std::string why) {
    if (Step* step = find(name)) {
        step->state = State::failed;
        step->ended = clock_();
        step->why = std::move(why);
    }
}

std::string Startup::json(const std::function<bool(std::string_view name)>& stands) const {
    std::string out;
    for (const Step& step : steps_) {
        const bool again = step.state == State::ready && !stands(step.name);
        if (!out.empty()) out += ',';
        out += fmt::format(R"({{"name":{},"state":"{}")", log::json_quote(step.name),
                           state_name(again ? State::starting : step.state));
        if (step.state != State::waits && !again)
            out += fmt::format(R"(,"seconds":{:.1f})",
                               static_cast<double>((step.ended != 0 ? step.ended : clock_()) - step.begun) / 1000);
        if (!step.why.empty()) out += fmt::format(R"(,"error":{})", log::json_quote(step.why));
        out += '}';
    }
    return fmt::format(R"({{"status":"starting","startup":[{}]}})", out);
}

}  // namespace gb::interpreter
