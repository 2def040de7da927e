// SPDX-License-Identifier: Apache-2.0
#include "cli/job_client.h"

#include <array>

#include <sys/stat.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/json.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/error_table.h"
#include "base/file.h"
#include "http/connect.h"
#include "http/message.h"

namespace gb::cli {

namespace asio = boost::asio;
namespace json = boost::json;
using asio::awaitable;
using namespace std::chrono_literals;

namespace {

constexpr auto kConnectLimit = 5s;
constexpr auto kAnswerLimit = 10min;  // a resume on a busy machine takes its time
constexpr auto kEndLimit = 60s;
constexpr auto kPing = 15s;     // the agent says something at least that often,
constexpr auto kSilence = 75s;  // and a connection on which it did not is dead

// A connection that is closed when nothing was heard of it for a while.
class Watched {
  public:
    static awaitable<Result<Watched>> connect(asio::ip::tcp::endpoint to) {
        auto executor = co_await asio::this_coro::executor;
        GB_CO_TRY_ASSIGN(auto connection, co_await http::ClientConnection::connect(to, kConnectLimit));
        co_return Watched(executor, std::move(connection));
    }
    http::ClientConnection* operator->() { return connection_.get(); }
    void expect_within(std::chrono::seconds limit) {
        timer_.expires_after(limit);
        // Shared with the handler, which may be queued already when this ends.
        timer_.async_wait([connection = connection_](const boost::system::error_code& ec) {
            if (!ec) connection->close();
        });
    }

  private:
    Watched(const asio::any_io_executor& executor, http::ClientConnection connection)
        : connection_(std::make_shared<http::ClientConnection>(std::move(connection))), timer_(executor) {}
    std::shared_ptr<http::ClientConnection> connection_;
    asio::steady_timer timer_;
};

std::unexpected<Error> refused(int status, std::string_view body) {
    return fail(code_from_http(status), message_of_answer(status, body));
}

}  // namespace

awaitable<Result<http::ClientConnection::Response>> JobClient::ask(std::string method, std::string path,
                                                                   std::string body) {
    GB_CO_TRY_ASSIGN(Watched connection, co_await Watched::connect(place_.endpoint));
    connection.expect_within(kAnswerLimit);
    http::RequestHead head{
        std::move(method), std::move(path), {{"Host", place_.host}, {"X-API-Key", server_.key}}};
    if (!body.empty()) head.headers.add("Content-Type", "application/json");
    GB_CO_TRY_ASSIGN(auto response, co_await connection->request(std::move(head), body));
    if (response.head.status / 100 != 2) co_return refused(response.head.status, response.body);
    co_return response;
}

awaitable<Result<json::value>> JobClient::api(std::string method, std::string path, std::string body) {
    GB_CO_TRY_ASSIGN(auto response, co_await ask(std::move(method), std::move(path), std::move(body)));
    if (response.body.empty()) co_return json::value();
    boost::system::error_code ec;
    json::value value = json::parse(response.body, ec);
    if (ec) co_return fail(ErrorCode::internal, "the server's answer is not JSON");
    co_return value;
}

awaitable<Result<json::array>> JobClient::list(std::string path) {
    json::array out;
    std::string token;
    do {
        GB_CO_TRY_ASSIGN(auto response, co_await ask("GET", token.empty() ? path : page_after(path, token), ""));
        boost::system::error_code ec;
        json::value items = json::parse(response.body, ec);
        if (ec || !items.is_array()) co_return fail(ErrorCode::internal, "the server's answer is no list");
        for (json::value& item : items.get_array()) out.push_back(std::move(item));
        token = response.head.headers.get("X-Next-Token");
    } while (!token.empty());
    co_return out;
}

http::RequestHead JobClient::agent_head(const JobSandbox& sandbox, std::string path,
                                        std::string_view content_type) const {
    http::RequestHead head{content_type.empty() ? "GET" : "POST",
                           std::move(path),
                           {{"Host", place_.sandbox_host},
                            {"E2b-Sandbox-Id", sandbox.id},
                            {"E2b-Sandbox-Port", std::to_string(kAgentPort)}}};
    if (!content_type.empty()) head.headers.add("Content-Type", std::string(content_type));
    if (!sandbox.token.empty()) head.headers.add("X-Access-Token", sandbox.token);
    if (!sandbox.user.empty())
        head.headers.add("Authorization", "Basic " + base64_encode(sandbox.user + ":"));
    return head;
}

awaitable<Status> JobClient::upload(JobSandbox sandbox, Upload file) {
    GB_CO_TRY_ASSIGN(UniqueFd fd, open_file(file.file, O_RDONLY | O_CLOEXEC));
    struct stat info{};
    if (::fstat(fd.get(), &info) != 0) co_return fail_errno(file.file.string());
    if (!S_ISREG(info.st_mode))
        co_return fail(ErrorCode::invalid_argument,
                       fmt::format("'{}' is no regular file", file.file.string()));
    GB_CO_TRY_ASSIGN(Watched connection, co_await Watched::connect(place_.endpoint));
    connection.expect_within(kAnswerLimit);
    auto left = static_cast<std::uint64_t>(info.st_size);
    GB_CO_TRY(co_await connection->start(
        agent_head(sandbox, "/files?path=" + http::percent_encode(file.path), "application/octet-stream"),
        left));
    auto piece = std::make_unique<std::array<char, 262'144>>();
    while (left > 0) {
        const ssize_t n = ::read(fd.get(), piece->data(), std::min<std::uint64_t>(piece->size(), left));
        if (n < 0) co_return fail_errno(file.file.string());
        if (n == 0)
            co_return fail(ErrorCode::aborted,
                           fmt::format("'{}' became shorter while it was read", file.file.string()));
        GB_CO_TRY(co_await connection->write({piece->data(), static_cast<std::size_t>(n)}));
        connection.expect_within(kAnswerLimit);
        left -= static_cast<std::uint64_t>(n);
    }
    GB_CO_TRY_ASSIGN(auto head, co_await connection->read_head());
    GB_CO_TRY_ASSIGN(std::string body, co_await connection->read_all(std::size_t{1} << 20));
    if (head.status / 100 != 2) co_return refused(head.status, body);
    co_return Status{};
}

awaitable<Result<std::string>> JobClient::download(JobSandbox sandbox, std::string path, std::size_t limit) {
    GB_CO_TRY_ASSIGN(Watched connection, co_await Watched::connect(place_.endpoint));
    connection.expect_within(kAnswerLimit);
    GB_CO_TRY_ASSIGN(
        auto response,
        co_await connection->request(agent_head(sandbox, "/files?path=" + http::percent_encode(path), ""), "", limit));
    if (response.head.status / 100 != 2) co_return refused(response.head.status, response.body);
    co_return std::move(response.body);
}

awaitable<Result<int>> JobClient::run(JobSandbox sandbox, std::string message,
                                      std::chrono::milliseconds limit, OnEvent on_event) {
    GB_CO_TRY_ASSIGN(Watched connection, co_await Watched::connect(place_.endpoint));
    connection.expect_within(kSilence);
    http::RequestHead head = agent_head(sandbox, "/process.Process/Start", "application/connect+json");
    head.headers.add("Connect-Protocol-Version", "1");
    head.headers.add("Connect-Timeout-Ms", std::to_string(limit.count()));
    head.headers.add("Keepalive-Ping-Interval", std::to_string(kPing.count()));
    const std::string body = http::envelope(0, message);
    GB_CO_TRY(co_await connection->start(std::move(head), body.size()));
    GB_CO_TRY(co_await connection->write(body));
    GB_CO_TRY_ASSIGN(auto answer, co_await connection->read_head());
    if (answer.status != 200) {
        GB_CO_TRY_ASSIGN(std::string text, co_await connection->read_all(std::size_t{1} << 20));
        co_return refused(answer.status, text);
    }
    http::EnvelopeReader frames(std::size_t{8} << 20);
    for (;;) {
        GB_CO_TRY_ASSIGN(auto frame, frames.next());
        if (!frame) {
            GB_CO_TRY_ASSIGN(std::string_view piece, co_await connection->next());
            if (piece.empty())
                co_return fail(ErrorCode::unavailable, "the connection to the sandbox was cut");
            connection.expect_within(kSilence);
            frames.feed(piece);
            continue;
        }
        if ((frame->flags & http::kEnvelopeEndStream) != 0)
            co_return fail(ErrorCode::aborted,
                           fmt::format("the agent ended the stream: {}", frame->payload.substr(0, 300)));
        GB_CO_TRY_ASSIGN(AgentEvent event, parse_agent_event(frame->payload));
        GB_CO_TRY(on_event(event));
        if (event.exit_code) co_return *event.exit_code;
    }
}

awaitable<Status> JobClient::end(JobSandbox sandbox, std::string tag) {
    GB_CO_TRY_ASSIGN(Watched connection, co_await Watched::connect(place_.endpoint));
    connection.expect_within(kEndLimit);
    GB_CO_TRY_ASSIGN(
        auto response,
        co_await connection->request(agent_head(sandbox, "/process.Process/SendSignal", "application/json"),
                                     end_message(tag)));
    if (response.head.status != 200) co_return refused(response.head.status, response.body);
    co_return Status{};
}

}  // namespace gb::cli
