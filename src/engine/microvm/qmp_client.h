// SPDX-License-Identifier: Apache-2.0
// Speaks to one QEMU over its monitor socket. Every wait has a limit (base/stall.h). One user at a time: the machine that
// owns the client holds a lock. After an error of the conversation (not of a command) the client is broken
// and says so.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "base/result.h"
#include "base/stall.h"
#include "base/unique_fd.h"
#include "engine/microvm/qmp_message.h"

namespace gb::engine {

struct QmpCommand {
    std::string name;
    boost::json::object arguments;
    int fd = -1;  // travels with the command (SCM_RIGHTS, for getfd); borrowed
};

class QmpClient {
  public:
    QmpClient() = default;
    // `signs`: what shows that a QEMU which does not answer yet is at work.
    explicit QmpClient(UniqueFd socket, Signs signs = {}) : socket_(std::move(socket)), signs_(std::move(signs)) {}

    // Sends a command without waiting. QEMU works in order, so several may be sent before the first answer is
    // taken; the greeting need not have come.
    Result<std::uint64_t> send(const QmpCommand& command, const Patience& patience);
    // The answer to `id`, which must be the oldest one that was not taken. failed_precondition when QEMU
    // refuses, unavailable when it has gone.
    Result<boost::json::value> take(std::uint64_t id, const Patience& patience);

    Result<boost::json::value> call(const QmpCommand& command, const Patience& patience);
    // All sent, then all answers taken; the first refusal is the error.
    Status call_all(const std::vector<QmpCommand>& commands, const Patience& patience);

    // The next event of that name: one that came earlier and was not taken, or a new one.
    Result<boost::json::object> wait_event(std::string_view name, const Patience& patience);

    // Forgets the events of that name that have come, and says whether there were any.
    bool take_events(std::string_view name);

    // Reads what has come without waiting, so that QEMU's side does not fill up.
    Status drain();
    [[nodiscard]] bool broken() const { return broken_; }

  private:
    Status wait_for(short what, StallLimit& limit) const;
    Status read_some(StallLimit& limit);
    Result<QmpMessage> next_message(StallLimit& limit);
    std::unexpected<Error> break_with(Error error);
    void keep(QmpEvent event);

    UniqueFd socket_;
    Signs signs_;
    QmpLines lines_;
    std::deque<QmpEvent> events_;
    std::uint64_t next_id_ = 1;
    bool broken_ = false;
};

}  // namespace gb::engine
