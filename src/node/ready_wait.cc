// SPDX-License-Identifier: Apache-2.0
#include "node/ready_wait.h"

#include <algorithm>
#include <functional>
#include <memory>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"

namespace gb {
namespace {

namespace json = boost::json;

constexpr useconds_t kLookEveryUs = 250'000;
constexpr std::chrono::seconds kHealthLimit{3};
constexpr std::int64_t kHealthEveryMs = 3'000;
// A try costs an emulated guest what it needs to get ready, and must not itself look like movement: where nothing is
// new, tries become rare.
constexpr std::int64_t kFirstPauseMs = 1'500, kLongestPauseMs = 15'000;
// A try that hangs is left alone and another one made; each may take twice as long.
constexpr std::int64_t kFirstTryMs = 60'000;

std::string text_of(const json::object& object, std::string_view name) {
    const json::value* value = object.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

// One after the other, the tries of the ready command.
class Tries {
  public:
    Tries(const AgentClient& agent, const ReadyWait& wait) : agent_(agent), wait_(wait) {}

    // True when it has said that all is ready.
    bool look() {
        const std::int64_t now = monotonic_ms();
        if (!running_) {
            if (now >= next_) start(now);
            return false;
        }
        if (auto ended = running_->ended()) {
            if (*ended && **ended == 0) return true;
            last_ = *ended ? fmt::format("exit code {}: {}", **ended, running_->output().substr(0, 300))
                           : ended->error().message;
            finish(now, std::max(pause_, 2 * (now - begun_)));
        } else if (now - begun_ > try_limit_) {
            last_ = fmt::format("it did not end within {}", duration_text(try_limit_));
            try_limit_ *= 2;
            finish(now, 0);
        }
        return false;
    }
    // There is reason to believe that it is worth trying.
    void soon() {
        pause_ = kFirstPauseMs;
        next_ = std::min(next_, monotonic_ms() + kFirstPauseMs);
    }
    void now() { next_ = 0; }
    [[nodiscard]] const std::string& last() const { return last_; }

  private:
    void start(std::int64_t now) {
        begun_ = now;
        auto started = agent_.start(wait_.command, "root", "", wait_.patience);
        if (started) {
            running_ = *std::move(started);
        } else {
            last_ = started.error().message;
            finish(monotonic_ms(), pause_);
        }
    }
    void finish(std::int64_t now, std::int64_t pause) {
        running_.reset();
        next_ = now + std::min(pause, kLongestPauseMs);
        pause_ = std::min(pause_ * 3 / 2, kLongestPauseMs);
    }

    const AgentClient& agent_;
    const ReadyWait& wait_;
    std::unique_ptr<RunningCommand> running_;
    std::string last_ = "it was never run";
    std::int64_t begun_ = 0, next_ = 0, pause_ = kFirstPauseMs, try_limit_ = kFirstTryMs;
};

}  // namespace

std::optional<StartupNews> parse_startup(std::string_view health) {
    boost::system::error_code ec;
    const json::value value = json::parse(health, ec);
    const json::object* object = ec ? nullptr : value.if_object();
    const json::value* steps = object != nullptr ? object->if_contains("startup") : nullptr;
    if (steps == nullptr || !steps->is_array() || steps->get_array().empty()) return std::nullopt;
    StartupNews out;
    double ready = 0;
    for (const json::value& item : steps->get_array()) {
        if (!item.is_object()) return std::nullopt;
        const std::string name = text_of(item.get_object(), "name"), state = text_of(item.get_object(), "state");
        if (name.empty() || name.size() > 40 || state.size() > 40) return std::nullopt;
        if (!out.text.empty()) out.text += ", ";
        out.text += fmt::format("{} {}", name, state == "starting" ? "being started" : state);
        if (state == "ready") ++ready;
    }
    out.fraction = ready / static_cast<double>(steps->get_array().size());
    return out;
}

Status wait_until_ready(const AgentClient& agent, const ReadyWait& wait) {
    if (wait.command.empty()) return {};
    StallLimit limit(wait.patience);
    Tries tries(agent, wait);
    StartupNews news;
    std::int64_t next_health = 0;
    std::uint64_t printed = 0;
    for (;; ::usleep(kLookEveryUs)) {
        if (tries.look()) return {};
        if (wait.started != nullptr) {
            const auto ended = wait.started->ended();
            if (ended && *ended && **ended != 0)
                return fail(ErrorCode::failed_precondition,
                            fmt::format("the start command ended with code {}; it printed: {}", **ended,
                                        wait.started->output()));
            limit.watch("start command", wait.started->printed());
            if (std::exchange(printed, wait.started->printed()) != wait.started->printed()) tries.soon();
        }
        if (const std::int64_t now = monotonic_ms(); wait.interpreter && now >= next_health) {
            auto answer = agent.get(kInterpreterPort, "/health", kHealthLimit);
            next_health = monotonic_ms() + std::max(kHealthEveryMs, 5 * (monotonic_ms() - now));
            if (answer && answer->status == 200) {
                if (news.fraction < 1) tries.now();
                news.fraction = 1;
            } else if (auto said = answer ? parse_startup(answer->body) : std::nullopt) {
                if (said->text != news.text) tries.soon();
                news = *std::move(said);
                limit.watch("health", std::hash<std::string>{}(news.text));
            }
        }
        if (wait.signs) GB_TRY(wait.signs(limit));
        if (limit.over()) break;
        if (wait.say) wait.say(news.text, news.fraction);
    }
    return fail(ErrorCode::deadline_exceeded,
                fmt::format("{}; last: {}{}; the start command printed: {}",
                            limit.error(fmt::format("the ready command '{}'", wait.command)).error().message,
                            tries.last(), news.text.empty() ? "" : "; the interpreter says: " + news.text,
                            wait.started != nullptr ? wait.started->output() : "nothing"));
}

}  // namespace gb
