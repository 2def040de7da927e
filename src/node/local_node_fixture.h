// SPDX-License-Identifier: Apache-2.0
// What live tests of the node share: a sandbox of the template `base` that runs. Needs root and captured
// templates (GLOVEBOX_TEMPLATES_DIR, else /var/lib/glovebox/templates), of this host's QEMU; skipped
// otherwise. GLOVEBOX_TEST_TEMPLATE names another one than `base`.
#pragma once

#include <chrono>
#include <future>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert_ok.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/log.h"
#include "engine/cgroup.h"
#include "http/client.h"
#include "node/local_node.h"

namespace gb {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using asio::awaitable;
using namespace std::chrono_literals;

inline fs::path templates_folder() {
    const char* named = ::getenv("GLOVEBOX_TEMPLATES_DIR");
    return named != nullptr ? named : "/var/lib/glovebox/templates";
}

class LocalNodeTest : public ::testing::Test {
  protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "machines are made by root";
        if (!TemplateStore(templates_folder()).find("base")) GTEST_SKIP() << "no template 'base'";
        thread_ = std::thread([this] { io_.run(); });
        ASSERT_NO_FATAL_FAILURE(open());
        Status made = create(id_);
        if (!made && made.error().code == ErrorCode::failed_precondition)
            GTEST_SKIP() << made.error().message;
        ASSERT_OK(made);
    }
    void TearDown() override {
        close();
        work_.reset();
        if (thread_.joinable()) thread_.join();
        pool_.join();
        if (!instance_.empty())
            if (auto layout = engine::detect_cgroup_layout())
                for (const auto& root : layout->roots()) ::rmdir((root / "glovebox" / instance_).c_str());
        (void)remove_tree(data_);
    }

    void open() {
        NodeOptions options;
        options.data_dir = data_;
        options.templates_dir = templates_folder();
        options.ready_slots = 1;
        auto node = LocalNode::open(io_.get_executor(), pool_, options);
        ASSERT_OK(node);
        node_ = *std::move(node);
        node_->on_exit([this](const std::string& id, const std::string&) { exited_.push_back(id); });
        instance_ = *instance_of(data_);
    }
    // On the loop: what it watches must not be closed under it.
    void close() {
        if (node_) asio::post(io_, asio::use_future([this] { node_.reset(); })).get();
    }
    void restart() {
        close();
        ASSERT_NO_FATAL_FAILURE(open());
    }

    template <class T>
    T run(awaitable<T> task) {
        return asio::co_spawn(io_, std::move(task), asio::use_future).get();
    }
    SandboxSpec spec(const std::string& id) const {
        SandboxSpec out;
        out.id = id;
        const char* named = ::getenv("GLOVEBOX_TEST_TEMPLATE");
        out.template_id = named != nullptr ? named : "base";
        out.network.allow_internet_access = false;
        return out;
    }
    Status create(const std::string& id) { return run(node_->create(spec(id))); }
    Status pause(PauseMode mode = PauseMode::with_memory) { return run(node_->pause(id_, mode)); }
    Status resume() { return run(node_->resume(spec(id_))); }

    awaitable<Result<std::string>> exchange(std::string id, std::string method, std::string target,
                                            std::string body, std::string token) {
        GB_CO_TRY_ASSIGN(auto socket, co_await node_->connect(std::move(id), kAgentPort));
        http::ClientConnection connection(std::move(socket));
        http::RequestHead head{std::move(method), std::move(target), {{"Host", "guest"}}};
        if (!token.empty()) head.headers.add("X-Access-Token", token);
        if (!body.empty()) head.headers.add("Content-Type", "application/octet-stream");
        GB_CO_TRY_ASSIGN(auto response,
                         co_await connection.request(std::move(head), body, std::size_t{256} << 20));
        if (response.head.status / 100 != 2)
            co_return fail(ErrorCode::internal, fmt::format("{}: {}", response.head.status, response.body));
        co_return std::move(response.body);
    }
    Result<std::string> get(const std::string& path) { return get_of(id_, path); }
    Result<std::string> get_of(const std::string& id, const std::string& path,
                               const std::string& token = "") {
        return run(exchange(id, "GET", "/files?username=root&path=" + path, "", token));
    }
    Status put(const std::string& path, std::string body) { return put_to(id_, path, std::move(body)); }
    Status put_to(const std::string& id, const std::string& path, std::string body,
                  const std::string& token = "") {
        auto done = run(exchange(id, "POST", "/files?username=root&path=" + path, std::move(body), token));
        return done ? Status() : std::unexpected(done.error());
    }
    fs::path file(std::string_view name) const { return data_ / "sandboxes" / id_ / name; }
    std::vector<std::string> held() {
        std::vector<std::string> out;
        for (const HeldSandbox& sandbox : *node_->held())
            out.push_back(sandbox.id + (sandbox.running ? "+" : "-"));
        std::ranges::sort(out);
        return out;
    }
    std::size_t groups() { return engine::list_cgroups(*engine::detect_cgroup_layout(), instance_).size(); }
    using Ids = std::vector<std::string>;

    const std::string id_ = "i" + random_id(19);
    fs::path data_ = fs::temp_directory_path() / ("glovebox-node-" + random_id(8));
    std::string instance_;
    asio::io_context io_;
    asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
    asio::thread_pool pool_{4};
    std::thread thread_;
    std::unique_ptr<LocalNode> node_;
    Ids exited_;  // of the loop's thread
};

}  // namespace gb
