// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_stage.h"

#include <csignal>
#include <cstdlib>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <unistd.h>

#include "base/clock.h"
#include "base/error_tuple.h"
#include "base/file.h"
#include "cli/child_server.h"
#include "cli/demo_job.h"
#include "cli/demo_world.h"
#include "cli/progress.h"

namespace gb::cli {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;

// What is being done, once it takes long enough that somebody asks.
class Waiting {
  public:
    void step(double fraction, std::string text) {
        line_.clear();
        fraction_ = fraction;
        text_ = std::move(text);
        since_ms_ = monotonic_ms();
    }
    void tick() {
        constexpr std::int64_t kUnasked_ms = 2'000;
        if (!text_.empty() && monotonic_ms() - since_ms_ >= kUnasked_ms)
            line_.update(fraction_, text_, "working");
    }
    void make_room() { line_.clear(); }
    asio::awaitable<void> keep_ticking() {
        asio::steady_timer timer(co_await asio::this_coro::executor);
        for (;;) {
            timer.expires_after(std::chrono::milliseconds(500));
            co_await timer.async_wait(asio::use_awaitable);
            tick();
        }
    }

  private:
    ProgressLine line_{"demo"};
    double fraction_ = 0;
    std::string text_;
    std::int64_t since_ms_ = 0;
};

class TemporaryFolder {
  public:
    static Result<TemporaryFolder> make() {
        std::error_code ec;
        std::string pattern = (fs::temp_directory_path(ec) / "glovebox-demo-XXXXXX").string();
        if (ec) return fail_errno(ec.value(), "the folder for temporary files (TMPDIR)");
        if (::mkdtemp(pattern.data()) == nullptr) return fail_errno("make a folder " + pattern);
        return TemporaryFolder(pattern);
    }
    TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    TemporaryFolder& operator=(TemporaryFolder&&) = delete;
    ~TemporaryFolder() {
        if (!path_.empty()) (void)remove_tree(path_);
    }
    [[nodiscard]] const fs::path& path() const { return path_; }

  private:
    explicit TemporaryFolder(fs::path path) : path_(std::move(path)) {}
    fs::path path_;
};

// The first line that the server prints; empty when it ended without one.
asio::awaitable<std::string> first_output(int fd) {
    asio::posix::stream_descriptor stream(co_await asio::this_coro::executor, ::dup(fd));
    std::string text;
    co_await asio::async_read_until(stream, asio::dynamic_buffer(text, 65'536), '\n',
                                    kErrorTuple);
    co_return text;
}

asio::awaitable<Status> play(ChildServer& server, DemoWorld& world, const fs::path& data_dir,
                             const DemoData& data, DemoReport& report, Waiting& waiting) {
    const std::string output = co_await first_output(server.output());
    GB_CO_TRY_ASSIGN(ServerAddress address, server.address_from(output));
    GB_CO_TRY_ASSIGN(ServerPlace place, resolve_server(address.url));
    co_return co_await run_demo_job(
        {.client = DemoClient(JobClient(std::move(address), std::move(place))),
         .report = report,
         .data_dir = data_dir,
         .outside = world.endpoint(),
         .url = world.url(),
         .progress = [&](double fraction, std::string step) { waiting.step(fraction, std::move(step)); }},
        data);
}

}  // namespace

Status stage_demo(const fs::path& templates_dir, const DemoData& data, DemoReport& report) {
    Waiting waiting;
    std::optional<Status> result;
    bool interrupted = false;
    asio::io_context io(1);
    // Until all is removed: a second one does not cut that short.
    asio::signal_set signals(io, SIGINT, SIGTERM, SIGHUP);
    signals.async_wait([&](const boost::system::error_code& ec, int) {
        if (ec) return;
        interrupted = true;
        io.stop();
    });
    GB_TRY_ASSIGN(TemporaryFolder folder, TemporaryFolder::make());
    GB_TRY_ASSIGN(auto world, DemoWorld::start(io.get_executor(), report.folder() / "control-server.log"));
    waiting.step(0, "start the server");
    // Nothing is made ahead of time: what is made is looked at.
    GB_TRY_ASSIGN(ChildServer server, ChildServer::start({.data_dir = folder.path(),
                                                          .templates_dir = templates_dir,
                                                          .log = report.folder() / "server.log",
                                                          .arguments = {"--pool", "0"}}));
    asio::co_spawn(io, waiting.keep_ticking(), asio::detached);
    asio::co_spawn(io, play(server, *world, folder.path(), data, report, waiting),
                   [&](const std::exception_ptr& failure, Status status) {
                       if (failure) std::rethrow_exception(failure);
                       result = std::move(status);
                       io.stop();
                   });
    report.before_print([&] { waiting.make_room(); });
    io.run();
    report.before_print({});
    waiting.step(0.97, "end the server and its sandboxes");
    server.stop([&] { waiting.tick(); });
    waiting.make_room();
    if (interrupted || !result) return fail(ErrorCode::canceled, "interrupted");
    return *result;
}

}  // namespace gb::cli
