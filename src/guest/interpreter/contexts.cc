#include "guest/interpreter/contexts.h"

#include <algorithm>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "guest/interpreter/kernel_scripts.h"
#include "guest/interpreter/language.h"

namespace gb::interpreter {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kFirstRetry = 500ms;
constexpr std::chrono::milliseconds kLongestRetry = 30s;
constexpr std::string_view kDefaultLanguage = "python";

}  // namespace

Contexts::Contexts(asio::any_io_executor executor, InterpreterOptions options)
    : executor_(std::move(executor)), options_(std::move(options)), scripts_(options_.run_dir / "kernel") {}

awaitable<void> Contexts::start_default() {
    for (auto pause = kFirstRetry; !closing_; pause = std::min(pause * 2, kLongestRetry)) {
        Status scripts = write_kernel_scripts(scripts_);
        if (scripts) {
            auto context = co_await default_for(std::string(kDefaultLanguage));
            if (context) co_return;
            trouble_ = context.error().message;
        } else {
            trouble_ = scripts.error().message;
            log::error("cannot write the kernel's start-up files", {{"error", trouble_}});
        }
        asio::steady_timer timer(executor_, pause);
        co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    }
}

bool Contexts::ready() const {
    auto found = defaults_.find(kDefaultLanguage);
    return found != defaults_.end() && found->second->ready();
}

std::shared_ptr<Context> Contexts::add(std::string language, std::string cwd,
                                       std::vector<std::string> preload) {
    ContextOptions options;
    options.language = std::move(language);
    options.kernel = {
        .run_dir = options_.run_dir, .scripts = scripts_, .python = options_.python, .cwd = std::move(cwd)};
    options.preload = std::move(preload);
    auto context = std::make_shared<Context>(executor_, zmq_, std::move(options));
    all_.push_back(context);
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
    GB_CO_TRY(require_kernel_for(language));
    if (cwd.empty()) cwd = options_.cwd;
    std::error_code ignored;
    if (cwd != options_.cwd && !std::filesystem::is_directory(cwd, ignored))
        co_return fail(ErrorCode::failed_precondition, fmt::format("cwd '{}' is not a directory", cwd));
    std::shared_ptr<Context> context = add(std::move(language), std::move(cwd), {});
    co_return co_await started(context);
}

awaitable<Result<std::shared_ptr<Context>>> Contexts::default_for(std::string language) {
    if (language == "typescript") language = "javascript";  // one kernel runs both
    GB_CO_TRY(require_kernel_for(language));
    std::shared_ptr<Context>& slot = defaults_[language];
    if (!slot) {
        std::vector<std::string> preload;
        if (language == kDefaultLanguage && !preloaded_) preload = options_.preload;
        slot = add(language, options_.cwd, std::move(preload));
    }
    std::shared_ptr<Context> context = slot;
    auto result = co_await started(context);
    if (result) preloaded_ = true;
    co_return result;
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
    all_.clear();
    defaults_.clear();
}

}  // namespace gb::interpreter
