// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/qmp_client.h"

#include <algorithm>
#include <cstring>

#include <sys/socket.h>

#include <fmt/format.h>
#include <poll.h>

namespace gb::engine {
namespace {

// Events that nobody waits for pile up only so far.
constexpr std::size_t kMaxEvents = 16;
// A monitor that sends this many lines instead of an answer is not QEMU any more.
constexpr int kMaxLinesPerWait = 10'000;

}  // namespace

Status QmpClient::wait_for(short what, StallLimit& limit) const {
    for (;;) {
        pollfd p{socket_.get(), what, 0};
        const int n = ::poll(&p, 1, static_cast<int>(limit.next_look().count()));
        if (n > 0) return {};
        if (n < 0 && errno != EINTR) return fail_errno("poll QEMU's monitor");
        if (n == 0 && signs_) GB_TRY(signs_(limit));
        if (n == 0 && limit.over()) return limit.error("QEMU's monitor");
    }
}

std::unexpected<Error> QmpClient::break_with(Error error) {
    broken_ = true;
    return std::unexpected(std::move(error));
}

void QmpClient::keep(QmpEvent event) {
    if (events_.size() == kMaxEvents) events_.pop_front();
    events_.push_back(std::move(event));
}

Result<std::uint64_t> QmpClient::send(const QmpCommand& command, const Patience& patience) {
    if (broken_ || !socket_) return fail(ErrorCode::unavailable, "QEMU's monitor is not usable any more");
    StallLimit limit(patience);
    const std::uint64_t id = next_id_++;
    const std::string request = qmp_request(command.name, command.arguments, id);
    std::string_view rest = request;
    bool fd_sent = command.fd < 0;
    while (!rest.empty()) {
        iovec io{const_cast<char*>(rest.data()), rest.size()};
        msghdr message{};
        message.msg_iov = &io;
        message.msg_iovlen = 1;
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
        if (!fd_sent) {
            message.msg_control = control;
            message.msg_controllen = sizeof control;
            cmsghdr* header = CMSG_FIRSTHDR(&message);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(sizeof(int));
            std::memcpy(CMSG_DATA(header), &command.fd, sizeof(int));
        }
        const ssize_t n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            fd_sent = true;
            rest.remove_prefix(static_cast<std::size_t>(n));
        } else if (errno == EAGAIN) {
            if (auto status = wait_for(POLLOUT, limit); !status)
                return break_with(status.error());
        } else if (errno != EINTR) {
            return break_with(Error::from_errno(errno, "write to QEMU's monitor"));
        }
    }
    return id;
}

Status QmpClient::read_some(StallLimit& limit) {
    char buffer[16384];
    for (;;) {
        const ssize_t n = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
        if (n > 0) return lines_.feed({buffer, static_cast<std::size_t>(n)});
        if (n == 0) return fail(ErrorCode::unavailable, "QEMU has closed its monitor");
        if (errno == EAGAIN) {
            GB_TRY(wait_for(POLLIN, limit));
        } else if (errno != EINTR) {
            return fail_errno("read QEMU's monitor");
        }
    }
}

Result<QmpMessage> QmpClient::next_message(StallLimit& limit) {
    for (;;) {
        if (auto line = lines_.next()) return parse_qmp_line(*line);
        GB_TRY(read_some(limit));
    }
}

Result<boost::json::value> QmpClient::take(std::uint64_t id, const Patience& patience) {
    if (broken_ || !socket_) return fail(ErrorCode::unavailable, "QEMU's monitor is not usable any more");
    StallLimit limit(patience);
    for (int lines = 0; lines < kMaxLinesPerWait; ++lines) {
        auto message = next_message(limit);
        if (!message) return break_with(message.error());
        if (auto* event = std::get_if<QmpEvent>(&*message)) {
            keep(std::move(*event));
        } else if (auto* reply = std::get_if<QmpReply>(&*message)) {
            if (reply->id != id)
                return break_with({ErrorCode::data_loss, "QEMU's monitor answers another question"});
            if (reply->error)
                return fail(ErrorCode::failed_precondition, fmt::format("QEMU: {}", *reply->error));
            return std::move(reply->result);
        }
    }
    return break_with({ErrorCode::data_loss, "QEMU's monitor talks without answering"});
}

Result<boost::json::value> QmpClient::call(const QmpCommand& command, const Patience& patience) {
    GB_TRY_ASSIGN(std::uint64_t id, send(command, patience));
    return take(id, patience);
}

Status QmpClient::call_all(const std::vector<QmpCommand>& commands, const Patience& patience) {
    std::vector<std::uint64_t> ids;
    for (const QmpCommand& command : commands) {
        GB_TRY_ASSIGN(std::uint64_t id, send(command, patience));
        ids.push_back(id);
    }
    Status first;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        auto result = take(ids[i], patience);
        if (result || !first) continue;
        first = std::unexpected(result.error().with(commands[i].name));
    }
    return first;
}

Result<boost::json::object> QmpClient::wait_event(std::string_view name, const Patience& patience) {
    StallLimit limit(patience);
    for (int lines = 0; lines < kMaxLinesPerWait; ++lines) {
        auto found = std::ranges::find(events_, name, &QmpEvent::name);
        if (found != events_.end()) {
            boost::json::object data = std::move(found->data);
            events_.erase(found);
            return data;
        }
        if (broken_ || !socket_) return fail(ErrorCode::unavailable, "QEMU's monitor is not usable any more");
        auto message = next_message(limit);
        if (!message) return break_with(message.error());
        if (auto* event = std::get_if<QmpEvent>(&*message)) {
            keep(std::move(*event));
        } else if (std::holds_alternative<QmpReply>(*message)) {
            return break_with({ErrorCode::data_loss, "QEMU's monitor answers what nobody asked"});
        }
    }
    return break_with({ErrorCode::data_loss, "QEMU's monitor talks without saying what is waited for"});
}

bool QmpClient::take_events(std::string_view name) {
    return std::erase_if(events_, [&](const QmpEvent& event) { return event.name == name; }) > 0;
}

Status QmpClient::drain() {
    if (broken_) return fail(ErrorCode::unavailable, "QEMU's monitor is not usable any more");
    for (int lines = 0; lines < kMaxLinesPerWait; ++lines) {
        StallLimit now(std::chrono::milliseconds(0));
        auto message = next_message(now);
        if (!message && message.error().code == ErrorCode::deadline_exceeded) return {};
        if (!message) return break_with(message.error());
        if (auto* event = std::get_if<QmpEvent>(&*message)) keep(std::move(*event));
    }
    return break_with({ErrorCode::data_loss, "QEMU's monitor talks without end"});
}

}  // namespace gb::engine
