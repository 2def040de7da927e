// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/jupyter_kernel.h"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/ids.h"

namespace gb::interpreter {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kAskAgain = 100ms;

}  // namespace

JupyterKernel::JupyterKernel(std::unique_ptr<KernelProcess> process, Speak speak,
                             std::shared_ptr<Wakeup> wakeup)
    : Kernel(std::move(process), std::move(wakeup)), session_(random_uuid()), speak_(speak) {}

awaitable<Result<std::unique_ptr<Kernel>>> JupyterKernel::start(std::unique_ptr<KernelProcess> process,
                                                                Connection connection, Speak speak,
                                                                Output output, KernelSurroundings around) {
    const int pidfd = process->pidfd();
    std::unique_ptr<JupyterKernel> kernel(new JupyterKernel(std::move(process), speak, around.wakeup));
    std::shared_ptr<Inbox> inbox = kernel->inbox_;
    JupyterClient::Events events;
    if (output == Output::waits) events.unread = inbox->unread;
    events.on_messages = [executor = around.executor, inbox](std::vector<Message> batch) {
        asio::post(executor, [inbox, batch = std::move(batch)]() mutable {
            for (Message& message : batch) inbox->push(std::move(message));
        });
    };
    events.on_exit = [executor = around.executor, inbox] { asio::post(executor, [inbox] { inbox->end(); }); };
    GB_CO_TRY_ASSIGN(kernel->client_,
                     JupyterClient::connect(around.zmq, std::move(connection), pidfd, std::move(events)));
    GB_CO_TRY(co_await kernel->wait_until_ready());
    co_return kernel;
}

// A reply on the shell channel does not mean that our subscription to iopub has reached the kernel, and
// output published before that is lost. So ask until both channels have been heard.
awaitable<Status> JupyterKernel::wait_until_ready() {
    KernelStartLimit limit(process_->pid());
    bool shell = false, iopub = false;
    std::int64_t ask_at = 0;
    while (!shell || !iopub) {
        while (std::optional<Message> message = next_message()) {
            shell = shell || message->type == "kernel_info_reply";
            iopub = iopub || message->type == "status";
        }
        if (shell && iopub) break;
        if (exited()) co_return fail(ErrorCode::unavailable, "the kernel " + process_->describe_end());
        GB_CO_TRY(limit.check());
        const std::int64_t now = monotonic_ms();
        // One question waits in the socket until the kernel is up; more are needed only once it answers.
        if (ask_at == 0 || (shell && now >= ask_at)) {
            request("kernel_info_request", {});
            ask_at = now + kAskAgain.count();
        }
        co_await inbox_->wakeup->wait_for(kAskAgain);
    }
    co_return Status();
}

std::string JupyterKernel::request(std::string_view type, boost::json::object content) {
    Request request;
    request.id = random_uuid();
    request.session = session_;
    request.type = type;
    request.date = rfc3339(now_ms());
    request.content = std::move(content);
    std::string id = request.id;
    client_->send(Channel::shell, std::move(request));
    return id;
}

std::string JupyterKernel::execute(const Cell& cell) {
    const auto visibility = cell.store_history ? Visibility::recorded : Visibility::unrecorded;
    return request("execute_request", execute_content(cell.code, visibility));
}

std::string JupyterKernel::call(const HiddenCall& call) {
    return request("execute_request", execute_content(speak_(call), Visibility::silent));
}

}  // namespace gb::interpreter
