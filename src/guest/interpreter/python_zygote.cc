// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/python_zygote.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error_tuple.h"
#include "base/log.h"
#include "guest/interpreter/connection.h"
#include "guest/interpreter/pipe.h"

namespace gb::interpreter {
namespace {

namespace json = boost::json;

// Everybody's memory: it goes after the spare kernels, and before those in use.
constexpr int kZygoteOomScore = 600;

}  // namespace

class PythonZygote::Pipes {
  public:
    Pipes(const asio::any_io_executor& executor, UniqueFd to_it, UniqueFd from_it)
        : requests(std::move(to_it)), answers(executor, from_it.release()) {}
    UniqueFd requests;
    asio::posix::stream_descriptor answers;
};

PythonZygote::PythonZygote(const asio::any_io_executor& executor, std::unique_ptr<KernelProcess> process)
    : executor_(executor), process_(std::move(process)), started_(executor) {}

PythonZygote::~PythonZygote() = default;

Result<std::shared_ptr<PythonZygote>> PythonZygote::spawn(const KernelOptions& options,
                                                          const std::vector<std::string>& modules,
                                                          const asio::any_io_executor& executor) {
    GB_TRY_ASSIGN(Pipe requests, make_pipe());
    GB_TRY_ASSIGN(Pipe answers, make_pipe());
    KernelCommand command;
    GB_TRY_ASSIGN(command.folder, make_kernel_folder(options.run_dir));
    command.cwd = "/";
    command.env = {"PYDEVD_DISABLE_FILE_VALIDATION=1"};
    command.argv = {options.runtimes.python, (options.scripts / "glovebox_zygote.py").string(),
                    (options.scripts / "ipython_kernel_config.py").string(),
                    fmt::format("{}", fmt::join(modules, ","))};
    command.fds = {{requests.read.get(), 3}, {answers.write.get(), 4}};
    GB_TRY_ASSIGN(std::unique_ptr<KernelProcess> process, KernelProcess::spawn(command));
    process->set_oom_score(kZygoteOomScore);
    std::shared_ptr<PythonZygote> zygote(new PythonZygote(executor, std::move(process)));
    zygote->pipes_ =
        std::make_unique<Pipes>(executor, not_blocking(std::move(requests.write)), std::move(answers.read));
    asio::co_spawn(executor, [zygote] { return zygote->read_answers(); }, asio::detached);
    return zygote;
}

void PythonZygote::close() {
    boost::system::error_code ignored;
    if (pipes_) pipes_->answers.close(ignored);
    gone();
}

void PythonZygote::gone() {
    ready_ = false;
    pipes_->requests.reset();
    started_.open();
    for (const std::shared_ptr<Waiting>& one : std::exchange(waiting_, {})) one->answered.open();
}

awaitable<bool> PythonZygote::wait_ready() {
    auto self = shared_from_this();
    co_await started_.wait();
    co_return ready_;
}

awaitable<void> PythonZygote::read_answers() {
    auto self = shared_from_this();
    const std::int64_t since = monotonic_ms();
    std::string buffer;
    for (;;) {
        auto [error, size] = co_await asio::async_read_until(pipes_->answers, asio::dynamic_buffer(buffer),
                                                             '\n', kErrorTuple);
        if (error) break;
        std::string line = buffer.substr(0, size);
        buffer.erase(0, size);
        if (!ready_ && !started_.is_open()) {
            ready_ = true;
            started_.open();
            log::info("zygote is ready", {{"pid", process_->pid()}, {"ms", monotonic_ms() - since}});
        } else if (!waiting_.empty()) {
            waiting_.front()->line = std::move(line);
            waiting_.front()->answered.open();
            waiting_.pop_front();
        }
    }
    gone();
}

bool PythonZygote::say(std::string_view line) {
    // A line is far less than a pipe holds, so it is written whole or not at all. SIGPIPE is ignored, as
    // everywhere here.
    return pipes_->requests &&
           ::write(pipes_->requests.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

awaitable<Result<std::unique_ptr<KernelProcess>>> PythonZygote::fork(const KernelCommand& command) {
    auto self = shared_from_this();
    const json::object request{{"connection_file", (command.folder / kConnectionFile).string()},
                               {"cwd", command.cwd}};
    auto waiting = std::make_shared<Waiting>(executor_);
    waiting_.push_back(waiting);
    if (!ready_ || !say(json::serialize(request) + "\n")) {
        std::erase(waiting_, waiting);
        co_return fail(ErrorCode::unavailable, "the zygote has gone");
    }
    co_await waiting->answered.wait();
    boost::system::error_code error;
    json::value answer = json::parse(waiting->line, error);
    if (error || !answer.is_object()) co_return fail(ErrorCode::unavailable, "the zygote has gone");
    const json::value* pid = answer.get_object().if_contains("pid");
    if (pid == nullptr || !pid->is_int64())
        co_return fail(ErrorCode::failed_precondition, "the zygote refuses: " + waiting->line);
    const auto number = static_cast<pid_t>(pid->get_int64());
    co_return KernelProcess::adopt(number, command.folder, [weak = weak_from_this(), number] {
        if (auto zygote = weak.lock())
            (void)zygote->say(json::serialize(json::object{{"reap", number}}) + "\n");
    });
}

}  // namespace gb::interpreter
