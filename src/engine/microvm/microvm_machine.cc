// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/microvm_machine.h"

#include <sys/stat.h>

#include <boost/json/array.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process_watch.h"
#include "engine/microvm/device_state.h"
#include "engine/microvm/limits.h"

namespace gb::engine {
namespace json = boost::json;
namespace {

using namespace std::chrono_literals;

constexpr Patience kStartLimit{30s, 10min};
constexpr Patience kLoadLimit{30s, 10min};
constexpr Patience kCaptureLimit{60s, 10min};
constexpr Patience kTakeOverLimit{10s, 1min};  // all others wait for one that hangs
constexpr std::string_view kDiskFull = "io-error";  // QEMU's word; only a full disk stops a guest of ours

json::object capability(std::string_view name) {
    json::object out;
    out["capability"] = name;
    out["state"] = true;
    return out;
}

// Memory that is mapped shared stays out of the stream, and the end of a migration is told without polling.
QmpCommand capabilities() {
    json::object arguments;
    arguments["capabilities"] = json::array{capability("x-ignore-shared"), capability("events")};
    return {"migrate-set-capabilities", std::move(arguments), -1};
}

QmpCommand with_argument(std::string name, std::string_view key, std::string_view value, int fd = -1) {
    json::object arguments;
    arguments[key] = value;
    return {std::move(name), std::move(arguments), fd};
}

Result<std::string> read_until_end(int fd, const Patience& patience, const Signs& signs) {
    StallLimit limit(patience);
    std::string out;
    char buffer[65536];
    for (;;) {
        pollfd p{fd, POLLIN, 0};
        const int ready = ::poll(&p, 1, static_cast<int>(limit.next_look().count()));
        if (ready < 0 && errno != EINTR) return fail_errno("poll QEMU's state");
        if (ready == 0) GB_TRY(signs(limit));
        if (limit.over()) return limit.error("QEMU's state");
        if (ready <= 0) continue;
        limit.moved();
        const ssize_t n = ::read(fd, buffer, sizeof buffer);
        if (n == 0) return out;
        if (n < 0 && errno != EINTR && errno != EAGAIN) return fail_errno("read QEMU's state");
        if (n > 0) out.append(buffer, static_cast<std::size_t>(n));
        if (out.size() > kMaxStateBytes) return fail(ErrorCode::too_large, "QEMU's state does not end");
    }
}

// A state to load, from end to end in a pipe that nobody has to feed: newer versions of QEMU take no file that is given as
// a descriptor.
Result<UniqueFd> state_pipe(const std::filesystem::path& path) {
    GB_TRY_ASSIGN(const std::string state, read_file(path));
    // QEMU would wait at an empty pipe for ever.
    if (state.empty()) return fail(ErrorCode::data_loss, fmt::format("the state {} is empty", path.string()));
    if (state.size() > kMaxStateBytes)
        return fail(ErrorCode::too_large, fmt::format("{} is too large for a state", path.string()));
    // QEMU waits for bytes, and an empty pipe only hangs up. A file has an end that it reads, and says so.
    if (state.empty()) return open_file(path, O_RDONLY);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe");
    UniqueFd read_end(ends[0]), write_end(ends[1]);
    const int room = ::fcntl(write_end.get(), F_GETPIPE_SZ);
    if (room < 0 || static_cast<std::size_t>(room) < state.size())
        if (::fcntl(write_end.get(), F_SETPIPE_SZ, static_cast<int>(state.size())) < 0)
            return fail_errno("make a pipe for the machine's state");
    if (::fcntl(write_end.get(), F_SETFL, O_NONBLOCK) != 0) return fail_errno("pipe");
    GB_TRY(write_all(write_end.get(), state));
    return read_end;
}

Status seal_file(const std::filesystem::path& path) {
    GB_TRY_ASSIGN(UniqueFd fd, open_file(path, O_RDONLY));
    if (::fchown(fd.get(), 0, 0) != 0) return fail_errno(fmt::format("chown {}", path.string()));
    if (::fchmod(fd.get(), 0444) != 0) return fail_errno(fmt::format("chmod {}", path.string()));
    if (::fsync(fd.get()) != 0) return fail_errno(fmt::format("fsync {}", path.string()));
    return {};
}

}  // namespace

Signs vmm_signs(pid_t pid) {
    return [watch = std::make_shared<ProcessWatch>(pid, Family::alone)](StallLimit& limit) -> Status {
        if (watch->moved()) limit.moved();
        return {};
    };
}

std::vector<QmpCommand> qmp_start_commands(bool incoming) {
    return {{"qmp_capabilities", {}, -1}, incoming ? capabilities() : QmpCommand{"cont", {}, -1}};
}

std::vector<QmpCommand> qmp_load_commands(int state_fd) {
    return {with_argument("getfd", "fdname", "state", state_fd),
            with_argument("migrate-incoming", "uri", "fd:state")};
}

Error MicrovmMachine::explain(Error error, bool ending) {
    if (!ending && !parts_.monitor.broken()) return error;
    const auto status = parts_.process.wait(std::chrono::milliseconds(500));
    if (!status) return error;
    (void)parts_.log->wait_end(std::chrono::milliseconds(200));
    std::string log = parts_.log->text();
    while (!log.empty() && log.back() == '\n') log.pop_back();
    if (log.size() > 500) log = "…" + log.substr(log.size() - 500);
    if (!status->known) return {error.code, fmt::format("{} (QEMU ended: {})", error.message, log)};
    return {error.code, fmt::format("{} (QEMU ended with {} {}: {})", error.message,
                                    status->signal != 0 ? "signal" : "code",
                                    status->signal != 0 ? status->signal : status->code, log)};
}

Status MicrovmMachine::start(bool incoming, const std::filesystem::path& state, AfterLoad after) {
    std::lock_guard lock(mutex_);
    std::vector<QmpCommand> commands = qmp_start_commands(incoming);
    UniqueFd state_fd;
    if (!state.empty()) {
        GB_TRY_ASSIGN(state_fd, state_pipe(state));
        for (QmpCommand& command : qmp_load_commands(state_fd.get())) commands.push_back(std::move(command));
    }
    if (auto status = parts_.monitor.call_all(commands, kStartLimit); !status)
        return std::unexpected(explain(status.error()));
    return state.empty() ? Status() : finish_load(after);
}

Result<std::string> MicrovmMachine::run_state(const Patience& patience) {
    auto answer = parts_.monitor.call({"query-status", {}, -1}, patience);
    if (!answer) return std::unexpected(explain(answer.error()));
    const json::value* status = answer->is_object() ? answer->get_object().if_contains("status") : nullptr;
    if (status == nullptr || !status->is_string())
        return fail(ErrorCode::data_loss, "QEMU does not say how it is");
    return std::string(status->get_string());
}

Status MicrovmMachine::take_over() {
    std::lock_guard lock(mutex_);
    // Each client of the monitor begins anew; what was set for migrations stays as it is.
    auto begun = parts_.monitor.call({"qmp_capabilities", {}, -1}, kTakeOverLimit);
    if (!begun) return std::unexpected(explain(begun.error()));
    GB_TRY_ASSIGN(const std::string state, run_state(kTakeOverLimit));
    if (state == "running") return {};
    // The server died while it had stopped the guest, to look at it or to save it, or while the disk was
    // full.
    if (state != "paused" && state != "postmigrate" && state != "finish-migrate" && state != kDiskFull)
        return fail(ErrorCode::failed_precondition, fmt::format("the guest does not run: {}", state));
    auto running = parts_.monitor.call({"cont", {}, -1}, kTakeOverLimit);
    return running ? Status() : std::unexpected(explain(running.error()));
}

Status MicrovmMachine::load(const SavedFiles& files, AfterLoad after) {
    std::lock_guard lock(mutex_);
    if (auto status = load_memory(files); !status) {
        Error error = explain(status.error());
        (void)kill();
        return std::unexpected(error.with("the machine's memory cannot be loaded"));
    }
    auto state = state_pipe(files.state);
    if (!state) {
        (void)kill();
        return std::unexpected(state.error());
    }
    if (auto status = parts_.monitor.call_all(qmp_load_commands(state->get()), kCommandLimit); !status)
        return std::unexpected(explain(status.error()));
    return finish_load(after);
}

Status MicrovmMachine::finish_load(AfterLoad after) {
    auto loaded = [&]() -> Status {
        for (;;) {
            GB_TRY_ASSIGN(json::object event, parts_.monitor.wait_event("MIGRATION", kLoadLimit));
            const json::value* status = event.if_contains("status");
            if (status == nullptr || !status->is_string()) continue;
            if (status->get_string() == "completed") return {};
            if (status->get_string() == "failed") return fail(ErrorCode::data_loss, "QEMU refuses it");
        }
    }();
    if (!loaded) {
        Error error = explain(loaded.error(), true);
        (void)kill();
        return fail(error.code == ErrorCode::deadline_exceeded ? error.code : ErrorCode::data_loss,
                    "the machine's state cannot be loaded: " + error.message);
    }
    if (after == AfterLoad::stay_paused) return {};
    auto running = parts_.monitor.call({"cont", {}, -1}, kCommandLimit);
    return running ? Status() : std::unexpected(explain(running.error()));
}

Status MicrovmMachine::stop() {
    std::lock_guard lock(mutex_);
    auto done = parts_.monitor.call({"stop", {}, -1}, kStopLimit);
    return done ? Status() : std::unexpected(explain(done.error()));
}

Status MicrovmMachine::cont() {
    std::lock_guard lock(mutex_);
    auto done = parts_.monitor.call({"cont", {}, -1}, kCommandLimit);
    return done ? Status() : std::unexpected(explain(done.error()));
}

bool MicrovmMachine::retry_full_disk() {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || !parts_.monitor.drain() || !parts_.monitor.take_events("STOP")) return false;
    // Other stops are our own, and over. BLOCK_IO_ERROR comes a moment before the guest is stopped, and for
    // errors that are only reported too.
    const auto state = run_state(kCommandLimit);
    return state && *state == kDiskFull && parts_.monitor.call({"cont", {}, -1}, kCommandLimit);
}

Result<std::string> MicrovmMachine::save_state() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe");
    UniqueFd read_end(ends[0]), write_end(ends[1]);
    // A pipe and not the file itself: how much is written is ours to decide.
    GB_TRY(parts_.monitor.call_all({{"stop", {}, -1},
                                    capabilities(),
                                    with_argument("getfd", "fdname", "state", write_end.get()),
                                    with_argument("migrate", "uri", "fd:state")},
                                   kCommandLimit));
    write_end.reset();
    GB_TRY_ASSIGN(std::string state, read_until_end(read_end.get(), kCaptureLimit, vmm_signs(pid())));
    for (;;) {
        GB_TRY_ASSIGN(json::object event, parts_.monitor.wait_event("MIGRATION", kCommandLimit));
        const json::value* status = event.if_contains("status");
        if (status == nullptr || !status->is_string()) continue;
        if (status->get_string() == "completed") return without_configuration(state);
        if (status->get_string() == "failed")
            return fail(ErrorCode::internal, "QEMU could not save its state");
    }
}

Status MicrovmMachine::seal() const {
    GB_TRY(seal_file(parts_.memory.image));
    return seal_file(parts_.disk.image);
}

Result<CaptureResult> MicrovmMachine::capture(const std::filesystem::path& state) {
    std::lock_guard lock(mutex_);
    if (parts_.memory.mapping != MemoryMapping::shared)
        return fail(ErrorCode::failed_precondition,
                    "only a machine whose memory is mapped shared can be captured whole");
    const std::int64_t start = monotonic_ms();
    auto saved = save_state();
    const std::int64_t stopped = monotonic_ms() - start;
    if (!saved) {
        Error error = explain(saved.error());
        (void)kill();
        return std::unexpected(error.with("capture"));
    }
    // The VMM could still write to both images: they are a template's only once it is gone.
    GB_TRY(kill());
    GB_TRY(seal());
    GB_TRY(write_file_atomic(state, *saved, 0444));
    return CaptureResult{saved->size(), std::chrono::milliseconds(stopped)};
}

}  // namespace gb::engine
