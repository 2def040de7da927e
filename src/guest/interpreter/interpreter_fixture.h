// SPDX-License-Identifier: Apache-2.0
// For tests: the whole server with real kernels, asked over HTTP.
#pragma once

#include <atomic>
#include <future>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process_watch.h"
#include "base/stall.h"
#include "base/subprocess.h"
#include "guest/interpreter/interpreter.h"
#include "http/client.h"

namespace gb::interpreter {

namespace json = boost::json;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using Response = http::ClientConnection::Response;

// The lines of one answer, sorted out.
struct Answer {
    std::vector<json::object> lines;

    [[nodiscard]] std::vector<json::object> of(std::string_view type) const {
        std::vector<json::object> found;
        for (const json::object& line : lines)
            if (line.at("type").as_string() == type) found.push_back(line);
        return found;
    }
    [[nodiscard]] std::string text(std::string_view type) const {
        std::string all;
        for (const json::object& line : of(type)) all += std::string_view(line.at("text").as_string());
        return all;
    }
    [[nodiscard]] std::string out() const { return text("stdout"); }
    [[nodiscard]] std::string main_result() const {
        for (const json::object& line : of("result"))
            if (line.at("is_main_result").as_bool())
                return std::string(std::string_view(line.at("text").as_string()));
        return "(none)";
    }
    [[nodiscard]] std::string error() const {
        auto found = of("error");
        return found.empty() ? "(none)" : std::string(std::string_view(found[0].at("name").as_string()));
    }
};

class InterpreterTest : public testing::Test {
  protected:
    void SetUp() override {
        if (const std::string missing = what_is_missing(); !missing.empty()) GTEST_SKIP() << missing;
        ::signal(SIGPIPE, SIG_IGN);  // as the program has it
        char name[] = "/tmp/gbi-XXXXXX";
        ASSERT_NE(::mkdtemp(name), nullptr);
        run_dir = name;
        InterpreterOptions options;
        options.run_dir = run_dir;
        options.cwd = run_dir.string();
        configure(options);
        interpreter = std::make_unique<Interpreter>(io, options);
        auto where = interpreter->start("127.0.0.1", 0);
        ASSERT_TRUE(where) << where.error().message;
        port = where->port();
        server = std::thread([this] { io.run(); });
        StallLimit limit({2min, 1h});
        ProcessWatch watch(::getpid(), Family::with_descendants);
        Response health;
        for (; !limit.over(); std::this_thread::sleep_for(50ms)) {
            health = request("GET", "/health");
            if (health.head.status == 200) break;
            if (watch.moved()) limit.moved();
            if (starting.empty() || starting.back() != health.body) starting.push_back(health.body);
        }
        ASSERT_EQ(health.body, "\"OK\"");
    }

    void TearDown() override {
        if (!server.joinable()) return;
        asio::post(io, [this] { interpreter->stop(); });
        server.join();  // returns only when every coroutine has ended
        interpreter.reset();
        EXPECT_TRUE(std::filesystem::is_empty(run_dir / "kernels"));
        (void)remove_tree(run_dir);
    }

    // What this machine lacks for the test; empty when all is there.
    virtual std::string what_is_missing() {
        static const bool available = has_ipykernel();
        return available ? "" : "/usr/bin/python3 has no ipykernel (package python3-ipykernel)";
    }
    virtual void configure(InterpreterOptions& /*options*/) {}

    static bool has_ipykernel() {
        auto output = gb::run({"/usr/bin/python3", "-c", "import ipykernel"});
        return output && output->exit_code == 0;
    }

    bool healthy() { return request("GET", "/health").head.status == 200; }

    Response request(std::string method, std::string target, std::string body = "") {
        asio::io_context client;
        auto future = asio::co_spawn(
            client, send(port, std::move(method), std::move(target), std::move(body)), asio::use_future);
        client.run();
        auto response = future.get();
        EXPECT_TRUE(response) << response.error().message;
        return response ? *std::move(response) : Response();
    }
    static awaitable<Result<Response>> send(std::uint16_t port, std::string method, std::string target,
                                            std::string body) {
        GB_CO_TRY_ASSIGN(auto connection, co_await http::ClientConnection::connect(
                                              {asio::ip::make_address("127.0.0.1"), port}, 5s));
        http::RequestHead head{.method = std::move(method),
                               .target = std::move(target),
                               .headers = {{"Host", "localhost"}, {"Content-Type", "application/json"}}};
        co_return co_await connection.request(std::move(head), body, std::size_t{64} << 20);
    }

    Answer execute(std::string_view code, json::object more = {}) {
        more["code"] = code;
        return answer(request("POST", "/execute", json::serialize(more)));
    }
    static Answer answer(const Response& response) {
        EXPECT_EQ(response.head.status, 200) << response.body;
        Answer answer;
        for (std::size_t at = 0; at < response.body.size();) {
            const std::size_t end = response.body.find('\n', at);
            answer.lines.push_back(json::parse(response.body.substr(at, end - at)).as_object());
            at = end + 1;
        }
        EXPECT_FALSE(answer.lines.empty());
        if (!answer.lines.empty()) {
            EXPECT_EQ(answer.lines.back().at("type"), "end_of_execution");
        }
        return answer;
    }
    static std::string error_value(const Answer& answer) {
        auto found = answer.of("error");
        return found.empty() ? "(none)" : std::string(std::string_view(found[0].at("value").as_string()));
    }
    // The text of the first result, displayed or main.
    static std::string first_text(const Answer& answer) {
        auto found = answer.of("result");
        return found.empty() ? "(none)" : std::string(std::string_view(found[0].at("text").as_string()));
    }
    std::string new_context(std::string_view body = "{}") {
        Response response = request("POST", "/contexts", std::string(body));
        EXPECT_EQ(response.head.status, 200) << response.body;
        return std::string(std::string_view(json::parse(response.body).as_object().at("id").as_string()));
    }

    // Sends an /execute and hangs up `after` that long.
    void execute_and_leave(std::string_view code, std::chrono::milliseconds after,
                           std::string_view language = "python") {
        asio::io_context client;
        http::tcp::socket socket(client);
        socket.connect({asio::ip::make_address("127.0.0.1"), port});
        const std::string body = json::serialize(json::object{{"code", code}, {"language", language}});
        const std::string text =
            "POST /execute HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
            "\r\n\r\n" + body;
        asio::write(socket, asio::buffer(text));
        std::this_thread::sleep_for(after);
    }

    std::filesystem::path run_dir;
    asio::io_context io{1};
    std::unique_ptr<Interpreter> interpreter;
    std::uint16_t port = 0;
    std::vector<std::string> starting;  // what /health said until all was ready
    std::thread server;
};

}  // namespace gb::interpreter
