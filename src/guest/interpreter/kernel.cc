#include "guest/interpreter/kernel.h"

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/ids.h"

namespace gb::interpreter {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kStartLimit =
    120s;  // an emulated machine under load needs tens of seconds
constexpr std::chrono::milliseconds kAskAgain = 100ms;

}  // namespace

awaitable<Result<std::unique_ptr<Kernel>>> Kernel::start(KernelOptions options, zmq::context_t& zmq,
                                                         asio::any_io_executor executor,
                                                         std::shared_ptr<Wakeup> wakeup) {
    std::unique_ptr<Kernel> kernel(new Kernel);
    kernel->session_ = random_uuid();
    GB_CO_TRY_ASSIGN(kernel->process_, KernelProcess::spawn(options));
    std::shared_ptr<Inbox> inbox = kernel->inbox_;
    JupyterClient::Events events;
    events.on_messages = [executor, inbox, wakeup](std::vector<Message> batch) {
        asio::post(executor, [inbox, wakeup, batch = std::move(batch)]() mutable {
            for (Message& message : batch) inbox->messages.push_back(std::move(message));
            wakeup->notify();
        });
    };
    events.on_exit = [executor, inbox, wakeup] {
        asio::post(executor, [inbox, wakeup] {
            inbox->exited = true;
            wakeup->notify();
        });
    };
    GB_CO_TRY_ASSIGN(kernel->client_, JupyterClient::connect(zmq, kernel->process_->connection(),
                                                             kernel->process_->pidfd(), std::move(events)));
    GB_CO_TRY(co_await kernel->wait_until_ready(wakeup));
    co_return kernel;
}

// A reply on the shell channel does not mean that our subscription to iopub has reached the kernel, and
// output published before that is lost. So ask until both channels have been heard.
awaitable<Status> Kernel::wait_until_ready(std::shared_ptr<Wakeup> wakeup) {
    const std::int64_t deadline = monotonic_ms() + kStartLimit.count();
    bool shell = false, iopub = false;
    std::int64_t ask_at = 0;
    while (!shell || !iopub) {
        while (std::optional<Message> message = next_message()) {
            shell = shell || message->type == "kernel_info_reply";
            iopub = iopub || message->type == "status";
        }
        if (shell && iopub) break;
        if (exited()) co_return fail(ErrorCode::unavailable, "the kernel " + process_->describe_end());
        const std::int64_t now = monotonic_ms();
        if (now > deadline)
            co_return fail(ErrorCode::deadline_exceeded,
                           fmt::format("the kernel did not answer within {} s", kStartLimit / 1s));
        // One question waits in the socket until the kernel is up; more are needed only once it answers.
        if (ask_at == 0 || (shell && now >= ask_at)) {
            request("kernel_info_request", {});
            ask_at = now + kAskAgain.count();
        }
        co_await wakeup->wait_for(kAskAgain);
    }
    co_return Status();
}

std::string Kernel::request(std::string_view type, boost::json::object content) {
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

std::string Kernel::execute(std::string_view code, Visibility visibility) {
    return request("execute_request", execute_content(code, visibility));
}

std::optional<Message> Kernel::next_message() {
    if (inbox_->messages.empty()) return std::nullopt;
    Message message = std::move(inbox_->messages.front());
    inbox_->messages.pop_front();
    return message;
}

}  // namespace gb::interpreter
