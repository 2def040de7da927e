// SPDX-License-Identifier: Apache-2.0
// An agent in plain mode on a free port, on a thread of its own, and clients that block.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/ids.h"
#include "guest/agent/agent.h"
#include "guest/agent/gzip.h"
#include "guest/agent/rpc.h"
#include "http/client.h"
#include "http/connect.h"
#include "proto/filesystem.pb.h"
#include "proto/process.pb.h"

namespace gb::agent {

namespace asio = boost::asio;

class TestAgent {
  public:
    explicit TestAgent(const std::function<void(AgentOptions&)>& adjust = {}) {
        AgentOptions options;
        UserCache users;
        options.settings.default_user = users.get()->user_name(::geteuid());
        options.allow_local_init = true;
        if (adjust) adjust(options);
        agent_ = std::make_unique<Agent>(context_, std::move(options));
        const auto endpoint = agent_->listen({asio::ip::address_v4::loopback(), 0});
        if (!endpoint) throw std::runtime_error(endpoint.error().message);
        endpoint_ = *endpoint;
        thread_ = std::thread([this] { context_.run(); });
    }
    ~TestAgent() {
        context_.stop();
        thread_.join();
        agent_.reset();
    }
    [[nodiscard]] asio::ip::tcp::endpoint endpoint() const { return endpoint_; }

  private:
    asio::io_context context_;
    std::unique_ptr<Agent> agent_;
    asio::ip::tcp::endpoint endpoint_;
    std::thread thread_;
};

// One connection.
class TestClient {
  public:
    using Response = http::ClientConnection::Response;

    explicit TestClient(const TestAgent& agent) {
        auto connection = run(http::ClientConnection::connect(agent.endpoint(), std::chrono::seconds(5)));
        if (!connection) throw std::runtime_error(connection.error().message);
        connection_.emplace(*std::move(connection));
    }

    template <class T>
    T run(http::awaitable<T> work) {
        std::optional<T> result;
        auto keep = [](http::awaitable<T> inner, std::optional<T>& out) -> http::awaitable<void> {
            out.emplace(co_await std::move(inner));
        };
        asio::co_spawn(context_, keep(std::move(work), result), [](const std::exception_ptr& failure) {
            if (failure) std::rethrow_exception(failure);
        });
        context_.restart();
        context_.run();
        return *std::move(result);
    }

    Response send(std::string method, std::string target, http::Headers headers = {},
                  std::string_view body = {}) {
        headers.set("Host", "localhost");
        http::RequestHead head{std::move(method), std::move(target), std::move(headers)};
        auto response = run(connection_->request(std::move(head), body, std::size_t{256} << 20));
        if (!response) throw std::runtime_error(response.error().message);
        return *std::move(response);
    }

    // A unary call; the second of the pair is the status, the first only then valid when that is 200.
    template <class Answer>
    std::pair<Answer, Response> call(const std::string& method, const google::protobuf::Message& request,
                                     http::Headers headers = {}, Encoding encoding = Encoding::json) {
        headers.set("Content-Type", encoding == Encoding::json ? "application/json" : "application/proto");
        Response response = send("POST", method, std::move(headers), encode_message(encoding, request));
        Answer answer;
        if (response.head.status == 200) {
            const Status decoded = decode_message(encoding, response.body, answer);
            EXPECT_TRUE(decoded) << response.body;
        }
        return {std::move(answer), std::move(response)};
    }

    http::ClientConnection& connection() { return *connection_; }

  private:
    asio::io_context context_;
    std::optional<http::ClientConnection> connection_;
};

// The answer to a call that streams.
class ServerStream {
  public:
    ServerStream(const TestAgent& agent, const std::string& method, const google::protobuf::Message& request,
                 http::Headers headers = {}, Encoding encoding = Encoding::json)
        : client_(agent), encoding_(encoding) {
        headers.set("Host", "localhost");
        headers.set("Content-Type",
                    encoding == Encoding::json ? "application/connect+json" : "application/connect+proto");
        const std::string body = http::envelope(0, encode_message(encoding, request));
        http::RequestHead head{"POST", method, std::move(headers)};
        must(client_.run(client_.connection().start(std::move(head), body.size())));
        must(client_.run(client_.connection().write(body)));
        auto answer = client_.run(client_.connection().read_head());
        if (!answer) throw std::runtime_error(answer.error().message);
        EXPECT_EQ(answer->status, 200);
        coding_ = answer->headers.get("Connect-Content-Encoding");
    }

    // False at the end of the stream; trailer() then says how it ended.
    bool next(google::protobuf::Message& message) {
        for (;;) {
            auto frame = frames_.next();
            if (!frame) throw std::runtime_error(frame.error().message);
            if (*frame) {
                std::string bytes = (*frame)->payload;
                if (((*frame)->flags & http::kEnvelopeCompressed) != 0) {
                    EXPECT_EQ(coding_, "gzip");
                    ++compressed_;
                    bytes = gunzip(bytes, std::size_t{64} << 20).value();
                }
                if (((*frame)->flags & http::kEnvelopeEndStream) != 0) {
                    trailer_ = bytes;
                    return false;
                }
                must(decode_message(encoding_, bytes, message));
                return true;
            }
            auto piece = client_.run(client_.connection().next());
            if (!piece || piece->empty()) {
                cut_ = true;
                return false;
            }
            frames_.feed(*piece);
        }
    }

    void disconnect() { client_.connection().close(); }
    [[nodiscard]] const std::string& trailer() const { return trailer_; }
    [[nodiscard]] bool was_cut() const { return cut_; }
    [[nodiscard]] int compressed_frames() const { return compressed_; }

  private:
    static void must(const Status& status) {
        if (!status) throw std::runtime_error(status.error().message);
    }

    TestClient client_;
    Encoding encoding_;
    http::EnvelopeReader frames_{std::size_t{64} << 20};
    std::string trailer_, coding_;
    bool cut_ = false;
    int compressed_ = 0;
};

// The stream of one Start or Connect.
class CommandStream : public ServerStream {
  public:
    using ServerStream::ServerStream;

    std::optional<::process::ProcessEvent> next() {
        ::process::StartResponse message;
        if (!ServerStream::next(message)) return std::nullopt;
        return message.event();
    }

    // Reads to the end of the stream.
    CommandStream& drain() {
        while (auto event = next()) take(*event);
        return *this;
    }
    bool read_more() {
        auto event = next();
        if (event) take(*event);
        return event.has_value();
    }
    // Reads until `text` has been seen in the output.
    bool read_until(std::string_view text) {
        while (out.find(text) == std::string::npos && terminal.find(text) == std::string::npos)
            if (!read_more()) return false;
        return true;
    }

    std::uint32_t pid = 0;
    std::string out, err, terminal;
    std::optional<::process::ProcessEvent::EndEvent> end;
    int keepalives = 0;
    int events_before_start = 0;

  private:
    void take(const ::process::ProcessEvent& event) {
        if (pid == 0 && !event.has_start()) ++events_before_start;
        if (event.has_start()) pid = event.start().pid();
        if (event.has_keepalive()) ++keepalives;
        if (event.has_end()) end = event.end();
        if (event.has_data()) {
            EXPECT_FALSE(end) << "data after the end";
            out += event.data().stdout();
            err += event.data().stderr();
            terminal += event.data().pty();
            EXPECT_LE(event.data().stdout().size(), 32U * 1024);
            EXPECT_LE(event.data().pty().size(), 16U * 1024);
        }
    }
};

inline ::process::StartRequest shell(const std::string& script) {
    ::process::StartRequest request;
    request.mutable_process()->set_cmd("/bin/sh");
    request.mutable_process()->add_args("-c");
    request.mutable_process()->add_args(script);
    request.set_stdin(false);
    return request;
}

inline CommandStream start(const TestAgent& agent, const ::process::StartRequest& request,
                           http::Headers headers = {}, Encoding encoding = Encoding::json) {
    return {agent, "/process.Process/Start", request, std::move(headers), encoding};
}

// A folder that goes away with the test.
class TestFolder {
  public:
    TestFolder() : path_(std::filesystem::temp_directory_path() / ("agent-" + random_id(10))) {
        std::filesystem::create_directory(path_);
    }
    ~TestFolder() { std::filesystem::remove_all(path_); }
    [[nodiscard]] std::string path(const std::string& name = {}) const {
        return name.empty() ? path_.string() : (path_ / name).string();
    }

  private:
    std::filesystem::path path_;
};

}  // namespace gb::agent
