// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/contexts.h"

#include <algorithm>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/error_tuple.h"
#include "base/log.h"
#include "guest/interpreter/kernel_scripts.h"
#include "guest/interpreter/python_zygote.h"

namespace gb::interpreter {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kFirstRetry = 500ms;
constexpr std::chrono::milliseconds kLongestRetry = 30s;
constexpr std::string_view kPreload = "preload";  // in Startup, beside the languages

}  // namespace

Contexts::Contexts(asio::any_io_executor executor, InterpreterOptions options)
    : executor_(std::move(executor)), options_(std::move(options)), scripts_(options_.run_dir / "kernel"), startup_(monotonic_ms) {
    for (const std::string& language : options_.languages) {
        if (Status known = require_kernel_for(language, options_.runtimes); !known) {
            log::warn("no default context", {{"language", language}, {"error", known.error().message}});
        } else {
            languages_.push_back(language);
        }
    }
    std::erase_if(options_.spares, [this](const std::string& language) {
        return !require_kernel_for(language, options_.runtimes);
    });
    spares_to_start_ = options_.spares.size();
    const bool preloads = !options_.preload.empty() && !options_.runtimes.python.empty();
    if (preloads && options_.zygote_first) startup_.plan(std::string(kPreload));
    for (const auto* some : {&languages_, &options_.spares})
        for (const std::string& language : *some) startup_.plan(language);
}

awaitable<void> Contexts::start_defaults() {
    if (options_.zygote_first) co_await start_zygote();
    for (const std::string& language : languages_) {
        startup_.begin(language);
        for (auto pause = kFirstRetry; !closing_; pause = std::min(pause * 2, kLongestRetry)) {
            Status started = co_await start_default(language);
            if (started) {
                startup_.ready(language);
                break;
            }
            startup_.failed(language, started.error().message);
            asio::steady_timer timer(executor_, pause);
            co_await timer.async_wait(kErrorTuple);
        }
    }
    if (!options_.zygote_first) co_await start_zygote();
    for (const std::string& language : options_.spares) {
        if (!closing_) co_await start_spare(language);
        --spares_to_start_;
    }
}

Contexts::~Contexts() = default;

// Without it kernels are started from nothing, which takes longer.
awaitable<void> Contexts::start_zygote() {
    if (options_.preload.empty() || options_.runtimes.python.empty() || closing_) co_return;
    if (Status written = prepare_scripts(); !written) co_return;
    KernelOptions options{
        .run_dir = options_.run_dir, .scripts = scripts_, .runtimes = options_.runtimes, .cwd = ""};
    auto zygote = PythonZygote::spawn(options, options_.preload, executor_);
    if (!zygote) {
        log::warn("no zygote", {{"error", zygote.error().message}});
        co_return;
    }
    zygote_ = *zygote;
    startup_.begin(kPreload);
    if (co_await zygote_->wait_ready()) {
        startup_.ready(kPreload);
    } else {
        log::warn("the zygote has ended");
        startup_.failed(kPreload, "it has ended; kernels start without it");
    }
}

awaitable<void> Contexts::start_spare(const std::string& language) {
    std::shared_ptr<Context>& slot = defaults_[language];
    startup_.begin(language);
    if (slot) co_return startup_.ready(language);  // somebody wanted it already
    std::shared_ptr<Context> context = slot = make(language, options_.cwd, Context::Role::spare);
    Status started = co_await context->wait_started();
    if (started) co_return startup_.ready(language);
    startup_.failed(language, started.error().message);
    // Who asks for the language later tries again, and is told why it does not start.
    if (context->spare()) defaults_.erase(language);
}

awaitable<Status> Contexts::start_default(const std::string& language) {
    GB_CO_TRY(prepare_scripts());
    GB_CO_TRY(co_await default_for(language));
    co_return Status();
}

Status Contexts::prepare_scripts() {
    if (scripts_written_) return {};
    Status written = write_kernel_scripts(scripts_);
    if (!written)
        log::error("cannot write the kernels' start-up files", {{"error", written.error().message}});
    scripts_written_ = written.has_value();
    return written;
}

bool Contexts::ready() const {
    return !languages_.empty() && spares_to_start_ == 0 &&
           std::ranges::all_of(languages_, [this](const std::string& language) { return stands(language); });
}

bool Contexts::stands(std::string_view language) const {
    auto found = defaults_.find(language);
    return found != defaults_.end() && found->second->ready();
}

std::string Contexts::startup() const {
    return startup_.json([this](std::string_view name) {
        return std::ranges::find(languages_, name) == languages_.end() || stands(name);
    });
}

std::shared_ptr<Context> Contexts::make(std::string language, std::string cwd, Context::Role role) {
    Context::Options options;
    options.kernel = {.run_dir = options_.run_dir,
                      .scripts = scripts_,
                      .runtimes = options_.runtimes,
                      .language = std::move(language),
                      .cwd = std::move(cwd)};
    options.zygote = [this] { return zygote_; };
    options.role = role;
    auto context = std::make_shared<Context>(executor_, zmq_, std::move(options));
    asio::co_spawn(executor_, [context] { return context->run(); }, asio::detached);
    return context;
}

awaitable<Result<std::shared_ptr<Context>>> Contexts::started(std::shared_ptr<Context> context) {
    Status status = co_await context->wait_started();
    if (status) co_return context;
    forget(*context);
    co_return std::unexpected(status.error());
}

awaitable<Result<std::shared_ptr<Context>>> Contexts::create(std::string language, std::string cwd) {
    GB_CO_TRY(require_kernel_for(language, options_.runtimes));
    if (cwd.empty()) cwd = options_.cwd;
    std::error_code ignored;
    if (cwd != options_.cwd && !std::filesystem::is_directory(cwd, ignored))
        co_return fail(ErrorCode::failed_precondition, fmt::format("cwd '{}' is not a directory", cwd));
    auto spare = defaults_.find(language);
    if (spare != defaults_.end() && spare->second->spare() && cwd == options_.cwd) {
        std::shared_ptr<Context> context = spare->second;
        defaults_.erase(spare);
        context->claim();
        all_.push_back(context);
        co_return co_await started(context);
    }
    std::shared_ptr<Context> context = make(std::move(language), std::move(cwd));
    all_.push_back(context);
    co_return co_await started(context);
}

awaitable<Result<std::shared_ptr<Context>>> Contexts::default_for(std::string language) {
    if (language == "typescript") language = "javascript";  // one kernel runs both
    GB_CO_TRY(require_kernel_for(language, options_.runtimes));
    std::shared_ptr<Context>& slot = defaults_[language];
    if (!slot) {
        slot = make(language, options_.cwd);
        all_.push_back(slot);
    } else if (slot->spare()) {
        slot->claim();
        all_.push_back(slot);
    }
    std::shared_ptr<Context> context = slot;
    co_return co_await started(context);
}

Result<std::shared_ptr<Context>> Contexts::find(std::string_view id) const {
    for (const std::shared_ptr<Context>& context : all_)
        if (context->id() == id) return context;
    return fail(ErrorCode::not_found, fmt::format("Context {} not found", id));
}

Status Contexts::remove(std::string_view id) {
    GB_TRY_ASSIGN(std::shared_ptr<Context> context, find(id));
    context->close();
    forget(*context);
    return {};
}

void Contexts::forget(const Context& context) {
    std::erase_if(defaults_, [&](const auto& entry) { return entry.second.get() == &context; });
    std::erase_if(all_, [&](const auto& entry) { return entry.get() == &context; });
}

void Contexts::close_all() {
    closing_ = true;
    for (const std::shared_ptr<Context>& context : all_) context->close();
    for (const auto& [language, context] : defaults_) context->close();
    all_.clear();
    defaults_.clear();
    if (zygote_) std::exchange(zygote_, nullptr)->close();
}

}  // namespace gb::interpreter
