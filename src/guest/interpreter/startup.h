// SPDX-License-Identifier: Apache-2.0
// What the server starts, one thing after the other, and how far it is: for who waits until all is ready. Pure, but for the
// clock it is given.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gb::interpreter {

class Startup {
  public:
    enum class State { waits, starting, ready, failed };
    using Clock = std::function<std::int64_t()>;  // milliseconds, never goes back

    explicit Startup(Clock clock) : clock_(std::move(clock)) {}

    void plan(std::string name);  // in the order in which they are started
    void begin(std::string_view name);
    void ready(std::string_view name);
    void failed(std::string_view name, std::string why);  // is tried again, or not

    // {"status":"starting","startup":[{"name","state":"waits|starting|ready|failed","seconds","error"}…]}, seconds from
    // begin to ready or until now. Such that `stands` denies are being started again.
    [[nodiscard]] std::string json(const std::function<bool(std::string_view name)>& stands) const;

  private:
    struct Step {
        std::string name;
        State state = State::waits;
        std::int64_t begun = 0, ended = 0;
        std::string why;
    };
    Step* find(std::string_view name);

    Clock clock_;
    std::vector<Step> steps_;
};

}  // namespace gb::interpreter
