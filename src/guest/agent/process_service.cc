// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/process_service.h"

#include <algorithm>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>
#include <signal.h>

#include "base/clock.h"
#include "guest/agent/event_stream.h"
#include "guest/agent/launch.h"

namespace gb::agent {
namespace {

// How long after its deadline a start's stream waits for the killed process: it must be gone from the list
// when the client hears of the deadline.
constexpr auto kKillGrace = std::chrono::seconds(2);

// The client measures the same limit, from a moment earlier. If it gave up first, it could still find the
// process in the list; so the agent is early by what a request takes on its way, never by more than a
// twentieth.
std::chrono::milliseconds time_to_run(std::chrono::milliseconds timeout) {
    return timeout - std::min(std::chrono::milliseconds(100), timeout / 20);
}

awaitable<Status> put_input(Process& process, const ::process::ProcessInput& input) {
    if (input.has_stdin()) co_return co_await process.write_stdin(input.stdin());
    if (input.has_pty()) co_return co_await process.write_terminal(input.pty());
    co_return fail(ErrorCode::invalid_argument, "input: neither stdin nor pty");
}

}  // namespace

awaitable<bool> ProcessService::serve(Exchange& exchange, std::string_view method) {
    using namespace ::process;
    if (method == "Start") {
        auto handle = [this](StreamWriter& w, const StartRequest& r) { return start(w, r); };
        co_await serve_stream<StartRequest>(exchange, handle);
    } else if (method == "Connect") {
        auto handle = [this](StreamWriter& w, const ConnectRequest& r) { return connect(w, r); };
        co_await serve_stream<ConnectRequest>(exchange, handle);
    } else if (method == "StreamInput") {
        co_await stream_input(exchange);
    } else if (method == "List") {
        auto handle = [this](const ListRequest&) -> awaitable<Result<ListResponse>> { co_return list(); };
        co_await serve_unary<ListRequest>(exchange, handle);
    } else if (method == "Update") {
        auto handle = [this](const UpdateRequest& r) -> awaitable<Result<UpdateResponse>> {
            co_return update(r);
        };
        co_await serve_unary<UpdateRequest>(exchange, handle);
    } else if (method == "SendInput") {
        auto handle = [this, &exchange](const SendInputRequest& r) { return send_input(exchange, r); };
        co_await serve_unary<SendInputRequest>(exchange, handle);
    } else if (method == "SendSignal") {
        auto handle = [this](const SendSignalRequest& r) -> awaitable<Result<SendSignalResponse>> {
            co_return send_signal(r);
        };
        co_await serve_unary<SendSignalRequest>(exchange, handle);
    } else if (method == "CloseStdin") {
        auto handle = [this](const CloseStdinRequest& r) { return close_stdin(r); };
        co_await serve_unary<CloseStdinRequest>(exchange, handle);
    } else {
        co_return false;
    }
    co_return true;
}

awaitable<Result<ProcessService::Launched>> ProcessService::launch(Exchange& exchange,
                                                                   const ::process::StartRequest& request) {
    GB_CO_TRY_ASSIGN(const Caller caller, identify(exchange.head, {}, settings_, users_));
    GB_CO_TRY_ASSIGN(Launch prepared,
                     prepare_launch(request, settings_, *caller.user, *caller.users, limits_));
    LoggedProcess logged = describe(prepared, caller.user->name);
    auto started = co_await table_.start(std::move(prepared));
    if (!started) {
        log_failed_start(log_, logged, started.error());
        co_return std::unexpected(started.error());
    }
    logged.pid = (*started)->pid();
    logged.started_ms = monotonic_ms();
    log_start(log_, logged);
    co_return Launched{*std::move(started), std::move(logged)};
}

awaitable<Status> ProcessService::start(StreamWriter& writer, const ::process::StartRequest& request) {
    Exchange& exchange = writer.exchange();
    GB_CO_TRY_ASSIGN(Launched launched, co_await launch(exchange, request));
    const ProcessPtr process = std::move(launched.process);
    Following following{process, process->subscribe(), keepalive_interval(exchange.head.headers)};
    following.started_it = true;
    auto timeout = call_timeout(exchange.head.headers);
    if (timeout) {
        following.deadline = Subscriber::Clock::now() + *timeout + kKillGrace;
        timeout = time_to_run(*timeout);
    }
    process->begin(timeout, [this, weak = std::weak_ptr(process), logged = std::move(launched.logged)] {
        auto ended = weak.lock();
        if (!ended) return;
        if (ended->end() != nullptr) log_end(log_, logged, *ended->end());
        table_.retire(ended);
    });
    co_await follow(writer, std::move(following));
    co_return Status{};
}

awaitable<Status> ProcessService::connect(StreamWriter& writer, const ::process::ConnectRequest& request) {
    const http::Headers& headers = writer.exchange().head.headers;
    GB_CO_TRY_ASSIGN(const ProcessPtr process, table_.find(request.process()));
    Following following{process, process->subscribe(), keepalive_interval(headers)};
    if (const auto timeout = call_timeout(headers)) following.deadline = Subscriber::Clock::now() + *timeout;
    co_await follow(writer, std::move(following));
    co_return Status{};
}

awaitable<void> ProcessService::stream_input(Exchange& exchange) {
    const auto encoding = stream_encoding(exchange.head.headers.get("Content-Type"));
    if (!encoding) {
        co_await refuse_content_type(exchange);
        co_return;
    }
    StreamWriter writer(exchange, *encoding);
    MessageReader reader(exchange, *encoding);
    ProcessPtr process;
    Status status;
    while (status) {
        ::process::StreamInputRequest message;
        const Result<bool> more = co_await reader.next(message);
        if (!more) status = std::unexpected(more.error());
        if (!more || !*more) break;
        if (message.has_start()) {
            auto found = table_.find_running(message.start().process());
            if (found)
                process = *found;
            else
                status = std::unexpected(found.error());
        } else if (message.has_data()) {
            if (process)
                status = co_await put_input(*process, message.data().input());
            else
                status = fail(ErrorCode::invalid_argument, "data before the start message");
        }
    }
    if (status) status = co_await writer.send(::process::StreamInputResponse());
    co_await writer.end(std::move(status));
}

::process::ListResponse ProcessService::list() const {
    ::process::ListResponse response;
    for (const ProcessPtr& process : table_.running()) {
        auto& info = *response.add_processes();
        *info.mutable_config() = process->config();
        info.set_pid(static_cast<std::uint32_t>(process->pid()));
        if (process->tag()) info.set_tag(*process->tag());
    }
    return response;
}

Result<::process::UpdateResponse> ProcessService::update(const ::process::UpdateRequest& request) {
    GB_TRY_ASSIGN(const ProcessPtr process, table_.find_running(request.process()));
    if (request.has_pty()) {
        const auto& size = request.pty().size();
        if (size.cols() == 0 || size.rows() == 0)
            return fail(ErrorCode::invalid_argument, "pty.size: cols and rows must be above 0");
        GB_TRY(process->resize({.cols = size.cols(), .rows = size.rows()}));
    }
    return ::process::UpdateResponse();
}

awaitable<Result<::process::SendInputResponse>> ProcessService::send_input(
    Exchange& exchange, const ::process::SendInputRequest& request) {
    using namespace asio::experimental::awaitable_operators;
    GB_CO_TRY_ASSIGN(const ProcessPtr process, table_.find_running(request.process()));
    // A program that does not read keeps this waiting. A client that gives up must not keep its connection
    // here.
    auto first = co_await (put_input(*process, request.input()) || exchange.response.peer_closed());
    if (first.index() == 1) co_return fail(ErrorCode::canceled, "the client has gone");
    GB_CO_TRY(std::get<0>(first));
    co_return ::process::SendInputResponse();
}

Result<::process::SendSignalResponse> ProcessService::send_signal(
    const ::process::SendSignalRequest& request) {
    GB_TRY_ASSIGN(const ProcessPtr process, table_.find_running(request.process()));
    const int signal = static_cast<int>(request.signal());
    if (signal != SIGKILL && signal != SIGTERM)
        return fail(ErrorCode::unimplemented, fmt::format("signal {} is not supported", signal));
    GB_TRY(process->signal(signal));
    return ::process::SendSignalResponse();
}

awaitable<Result<::process::CloseStdinResponse>> ProcessService::close_stdin(
    const ::process::CloseStdinRequest& request) {
    GB_CO_TRY_ASSIGN(const ProcessPtr process, table_.find_running(request.process()));
    GB_CO_TRY(co_await process->close_stdin());
    co_return ::process::CloseStdinResponse();
}

}  // namespace gb::agent
