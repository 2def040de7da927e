// SPDX-License-Identifier: Apache-2.0
#include "node/agent_client.h"

#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/error_table.h"
#include "base/error_tuple.h"
#include "base/ids.h"
#include "http/client.h"
#include "http/connect.h"

namespace gb {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using asio::awaitable;
using asio::ip::tcp;
using http::ClientConnection;

constexpr std::size_t kMaxCapture = std::size_t{1} << 20;
constexpr std::chrono::milliseconds kFirstTry{2'000}, kLongestTry{60'000};  // of the question whether an agent is there

// Runs one coroutine to its end on a loop of its own; what is not done in time is abandoned with the loop. `one_try`: how
// long this may take, though the limit of the whole is not reached.
template <class T>
Result<T> run_until(StallLimit& limit, const Signs& signs, std::string_view what,
                    const std::function<awaitable<Result<T>>()>& body,
                    std::chrono::milliseconds one_try = std::chrono::hours(24)) {
    asio::io_context io(1);
    std::optional<Result<T>> result;
    asio::co_spawn(io, body(), [&](const std::exception_ptr& failure, Result<T> value) {
        if (failure) std::rethrow_exception(failure);
        result = std::move(value);
    });
    StallLimit this_try(one_try);
    for (;;) {
        io.run_for(std::min(limit.next_look(), this_try.next_look()));
        if (result) return *std::move(result);
        if (signs) GB_TRY(signs(limit));
        if (limit.over()) return limit.error(what);
        if (this_try.over()) return this_try.error(what);
    }
}

awaitable<Result<ClientConnection>> dial(const AgentClient::OpenSocket& open_socket, std::uint16_t port) {
    GB_CO_TRY_ASSIGN(UniqueFd fd, open_socket());
    tcp::socket socket(co_await asio::this_coro::executor);
    boost::system::error_code ec;
    socket.assign(tcp::v4(), fd.release(), ec);
    if (ec) co_return fail(ErrorCode::internal, "socket: " + ec.message());
    auto [connect_ec] = co_await socket.async_connect({asio::ip::make_address(kGuestAddress), port},
                                                      kErrorTuple);
    if (connect_ec) co_return fail(ErrorCode::unavailable, fmt::format("guest port {}: {}", port, connect_ec.message()));
    co_return ClientConnection(std::move(socket));
}

http::RequestHead head(std::string method, std::string path, std::string_view content_type) {
    http::RequestHead out{std::move(method), std::move(path), {{"Host", kGuestAddress}}};
    if (!content_type.empty()) out.headers.add("Content-Type", std::string(content_type));
    return out;
}

awaitable<Result<AgentClient::Answer>> exchange(const AgentClient::OpenSocket& open_socket, std::uint16_t port,
                                                http::RequestHead request, std::string body) {
    GB_CO_TRY_ASSIGN(ClientConnection connection, co_await dial(open_socket, port));
    GB_CO_TRY_ASSIGN(auto response, co_await connection.request(std::move(request), body));
    co_return AgentClient::Answer{response.head.status, std::move(response.body)};
}

std::string start_message(const std::string& command, const std::string& tag) {
    json::object process{{"cmd", "/bin/bash"}, {"args", json::array{"-l", "-c", command}}};
    json::object message{{"process", std::move(process)}, {"stdin", false}};
    if (!tag.empty()) message["tag"] = tag;
    return http::envelope(0, json::serialize(message));
}

http::RequestHead start_head(const std::string& user) {
    http::RequestHead out = head("POST", "/process.Process/Start", "application/connect+json");
    out.headers.add("Connect-Protocol-Version", "1");
    out.headers.add("Authorization", "Basic " + base64_encode(user + ":"));
    return out;
}

using OnOutput = std::function<void(std::string_view bytes, bool standard_error)>;

// The exit code when `message` is the end event.
Result<std::optional<int>> take_event(const json::value& message, const OnOutput& on_output) {
    const json::object* object = message.if_object();
    const json::value* event = object != nullptr ? object->if_contains("event") : nullptr;
    if (event == nullptr || !event->is_object()) return fail(ErrorCode::internal, "the agent sent no event");
    if (const json::value* data = event->get_object().if_contains("data"); data != nullptr && data->is_object()) {
        for (const char* name : {"stdout", "stderr"}) {
            const json::value* text = data->get_object().if_contains(name);
            if (text == nullptr || !text->is_string()) continue;
            if (auto bytes = base64_decode(text->get_string())) on_output(*bytes, name[3] == 'e');
        }
    }
    const json::value* end = event->get_object().if_contains("end");
    if (end == nullptr || !end->is_object()) return std::nullopt;
    const json::value* code = end->get_object().if_contains("exitCode");
    return code != nullptr && code->is_int64() ? static_cast<int>(code->get_int64()) : 0;
}

// Starts a command and follows it to its end; `started` is called when it runs.
awaitable<Result<int>> follow(const AgentClient::OpenSocket& open_socket, std::string message, std::string user,
                              OnOutput on_output, std::function<void()> started) {
    GB_CO_TRY_ASSIGN(ClientConnection connection, co_await dial(open_socket, kAgentPort));
    GB_CO_TRY(co_await connection.start(start_head(user), message.size()));
    GB_CO_TRY(co_await connection.write(message));
    GB_CO_TRY_ASSIGN(auto answer, co_await connection.read_head());
    if (answer.status != 200)
        co_return fail(code_from_http(answer.status), fmt::format("the agent answered {}", answer.status));
    http::EnvelopeReader frames(std::size_t{8} << 20);
    for (bool first = true;;) {
        GB_CO_TRY_ASSIGN(auto frame, frames.next());
        if (!frame) {
            GB_CO_TRY_ASSIGN(std::string_view piece, co_await connection.next());
            if (piece.empty()) co_return fail(ErrorCode::unavailable, "the agent cut the stream of a command");
            frames.feed(piece);
            continue;
        }
        if ((frame->flags & http::kEnvelopeEndStream) != 0)
            co_return fail(ErrorCode::internal, fmt::format("the command did not start: {}", frame->payload.substr(0, 300)));
        boost::system::error_code ec;
        json::value value = json::parse(frame->payload, ec);
        if (ec) co_return fail(ErrorCode::internal, "the agent sent no JSON");
        if (first && started) started();
        first = false;
        GB_CO_TRY_ASSIGN(auto code, take_event(value, on_output));
        if (code) co_return *code;
    }
}

// Follows a command on a thread of its own.
class Follower final : public RunningCommand {
  public:
    ~Follower() override {
        io_.stop();
        if (thread_.joinable()) thread_.join();
    }

    Status begin(AgentClient::OpenSocket open_socket, std::string message, std::string user, StallLimit limit,
                 const Signs& signs) {
        open_socket_ = std::move(open_socket);
        auto on_output = [this](std::string_view bytes, bool) {
            std::lock_guard lock(mutex_);
            printed_ += bytes.size();
            output_.append(bytes);
            if (output_.size() > 2 * kKeep) output_.erase(0, output_.size() - kKeep);
        };
        // Shared: the completion handler runs when the command ends, long after this function.
        struct Start {
            std::promise<Status> promise;
            bool said = false;
        };
        auto start = std::make_shared<Start>();
        auto started_future = start->promise.get_future();
        auto on_start = [start] {
            start->said = true;
            start->promise.set_value({});
        };
        asio::co_spawn(io_, follow(open_socket_, std::move(message), std::move(user), on_output, on_start),
                       [this, start](const std::exception_ptr& failure, Result<int> code) {
                           if (failure) code = fail(ErrorCode::internal, "following the command failed");
                           std::lock_guard lock(mutex_);
                           ended_ = code;
                           if (!start->said) start->promise.set_value(code ? Status() : std::unexpected(code.error()));
                       });
        thread_ = std::thread([this] { io_.run(); });
        while (started_future.wait_for(limit.next_look()) != std::future_status::ready) {
            Status going_on = signs ? signs(limit) : Status();
            if (going_on && limit.over()) going_on = limit.error("the agent's start of a command");
            if (going_on) continue;
            io_.stop();
            thread_.join();
            return going_on;
        }
        return started_future.get();
    }

    [[nodiscard]] std::string output() const override {
        std::lock_guard lock(mutex_);
        return output_.size() > kKeep ? output_.substr(output_.size() - kKeep) : output_;
    }
    [[nodiscard]] std::uint64_t printed() const override {
        std::lock_guard lock(mutex_);
        return printed_;
    }
    [[nodiscard]] std::optional<Result<int>> ended() const override {
        std::lock_guard lock(mutex_);
        return ended_;
    }

  private:
    static constexpr std::size_t kKeep = 65536;
    asio::io_context io_{1};
    AgentClient::OpenSocket open_socket_;
    std::thread thread_;
    mutable std::mutex mutex_;
    std::string output_;
    std::uint64_t printed_ = 0;
    std::optional<Result<int>> ended_;
};

}  // namespace

Status AgentClient::wait_ready(const Patience& patience) const {
    StallLimit limit(patience);
    const auto ask = [&] { return exchange(open_socket_, kAgentPort, head("GET", "/health", ""), ""); };
    for (std::chrono::milliseconds one_try = kFirstTry;;) {
        auto answer = run_until<Answer>(limit, signs_, "GET /health", ask, one_try);
        if (answer && answer->status / 100 == 2) return {};
        // A guest that needs a minute for an answer gets it.
        if (!answer && answer.error().code == ErrorCode::deadline_exceeded) one_try = std::min(one_try * 2, kLongestTry);
        if (signs_) GB_TRY(signs_(limit));
        if (limit.over()) {
            Error error = limit.error("the agent").error();
            error.message += "; last: " + (answer ? fmt::format("status {}", answer->status) : answer.error().message);
            return std::unexpected(std::move(error));
        }
        ::usleep(50'000);
    }
}

Status AgentClient::init(const GuestIdentity& identity, const Patience& patience) const {
    json::object env;
    for (const auto& [name, value] : identity.env_vars) env[name] = value;
    json::object body{{"envVars", std::move(env)},
                      {"accessToken", identity.access_token},
                      {"timestamp", rfc3339(now_ms())},
                      {"defaultUser", identity.default_user},
                      {"defaultWorkdir", identity.workdir},
                      {"hostname", identity.sandbox_id},
                      {"sandboxID", identity.sandbox_id},
                      {"templateID", identity.template_id},
                      {"caBundle", identity.authority_pem},
                      {"caHash", identity.authority_hash},
                      {"entropy", base64_encode(random_bytes(64))}};
    if (identity.access_token.empty()) body.erase("accessToken");
    auto answer = request(kAgentPort, "POST", "/init", json::serialize(body), patience);
    if (!answer) return std::unexpected(answer.error().with("give the guest its identity"));
    return {};
}

Status AgentClient::trust(const std::string& authority_pem, const std::string& authority_hash,
                          const Patience& patience) const {
    const json::object body{{"caBundle", authority_pem}, {"caHash", authority_hash}};
    auto answer = request(kAgentPort, "POST", "/trust", json::serialize(body), patience);
    return answer ? Status() : std::unexpected(answer.error().with("set the guest's certificate authority"));
}

Status AgentClient::tell(const std::string& path, const Patience& patience) const {
    auto answer = request(kAgentPort, "POST", path, "", patience);
    return answer ? Status() : std::unexpected(answer.error());
}

Status AgentClient::freeze(const Patience& patience) const {
    return tell("/freeze", patience);
}

Status AgentClient::thaw(const Patience& patience) const {
    return tell("/thaw", patience);
}

Status AgentClient::hold(const Patience& patience) const {
    return tell("/hold", patience);
}

Status AgentClient::release(const Patience& patience) const {
    return tell("/release", patience);
}

Result<CommandResult> AgentClient::run(const std::string& command, const std::string& user,
                                       const Patience& patience) const {
    CommandResult result;
    StallLimit limit(patience);
    auto on_output = [&](std::string_view bytes, bool standard_error) {
        limit.moved();
        std::string& sink = standard_error ? result.err : result.out;
        if (sink.size() < kMaxCapture) sink.append(bytes);
    };
    auto code = run_until<int>(limit, signs_, "command", [&] {
        return follow(open_socket_, start_message(command, ""), user, on_output, {});
    });
    if (!code) return std::unexpected(code.error());
    result.exit_code = *code;
    return result;
}

Result<std::unique_ptr<RunningCommand>> AgentClient::start(const std::string& command, const std::string& user,
                                                           const std::string& tag, const Patience& patience) const {
    auto out = std::make_unique<Follower>();
    GB_TRY(out->begin(open_socket_, start_message(command, tag), user, StallLimit(patience), signs_));
    return out;
}

Result<std::string> AgentClient::request(std::uint16_t port, const std::string& method, const std::string& path,
                                         const std::string& body, const Patience& patience,
                                         std::string_view content_type) const {
    StallLimit limit(patience);
    const std::string what = method + " " + path;
    auto answer = run_until<Answer>(limit, signs_, what, [&] {
        return exchange(open_socket_, port, head(method, path, body.empty() ? "" : content_type), body);
    });
    if (!answer) return std::unexpected(answer.error());
    if (answer->status / 100 != 2)
        return fail(code_from_http(answer->status),
                    fmt::format("{} answered {}: {}", what, answer->status, answer->body.substr(0, 300)));
    return std::move(answer->body);
}

Result<AgentClient::Answer> AgentClient::get(std::uint16_t port, const std::string& path,
                                             const Patience& patience) const {
    StallLimit limit(patience);
    return run_until<Answer>(limit, signs_, "GET " + path,
                             [&] { return exchange(open_socket_, port, head("GET", path, ""), ""); });
}

}  // namespace gb
