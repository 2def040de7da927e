// SPDX-License-Identifier: Apache-2.0
// What tests of real machines share: a node with its loop, and a data folder that several of them have, one
// after the other. A child process plays the server that is killed. Needs what local_node_test.cc needs.
#pragma once

#include <chrono>
#include <future>
#include <thread>

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert_ok.h"
#include "base/clock.h"
#include "base/eventually.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/subprocess.h"
#include "engine/cgroup.h"
#include "engine/microvm/strays.h"
#include "net/address_block.h"
#include "net/host_rules.h"
#include "net/netns.h"
#include "node/agent_client.h"
#include "node/local_node.h"

namespace gb::live {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

inline fs::path templates_folder() {
    const char* named = ::getenv("GLOVEBOX_TEMPLATES_DIR");
    return named != nullptr ? named : "/var/lib/glovebox/templates";
}

// One run of a server on a data folder, as far as the node goes.
class Server {
  public:
    explicit Server(const fs::path& data, const WarmOptions& warm = {}) : thread_([this] { io_.run(); }) {
        NodeOptions options;
        options.data_dir = data;
        options.templates_dir = templates_folder();
        options.ready_slots = 1;
        options.warm = warm;
        auto node = LocalNode::open(io_.get_executor(), pool_, options);
        if (!node) {
            error = node.error();
            return;
        }
        node_ = *std::move(node);
        node_->on_exit([this](const std::string& id, const std::string&) { exited.push_back(id); });
    }
    ~Server() { stop(false); }

    template <class F>
    auto on_loop(F body) {
        return asio::post(io_, asio::use_future(std::move(body))).get();
    }
    void stop(bool leave) {
        if (node_)
            on_loop([&] {
                if (leave) node_->leave_running();
                node_.reset();
            });
        work_.reset();
        if (thread_.joinable()) thread_.join();
        pool_.join();
    }
    template <class T>
    std::future<T> begin(asio::awaitable<T> task) {
        return asio::co_spawn(io_, std::move(task), asio::use_future);
    }
    template <class T>
    T run(asio::awaitable<T> task) {
        return begin(std::move(task)).get();
    }
    Status connects(const std::string& id) {
        return run([](LocalNode& node, std::string name) -> asio::awaitable<Status> {
            GB_CO_TRY(co_await node.connect(name, kAgentPort));
            co_return Status{};
        }(*node_, id));
    }
    LocalNode& node() { return *node_; }
    [[nodiscard]] bool opened() const { return node_ != nullptr; }
    // Those that run end with +, paused ones with -.
    std::vector<std::string> held() {
        std::vector<std::string> out;
        for (const HeldSandbox& sandbox : *node_->held())
            out.push_back(sandbox.id + (sandbox.running ? "+" : "-"));
        return out;
    }

    Error error{ErrorCode::unknown, ""};
    std::vector<std::string> exited;  // of the loop's thread

  private:
    asio::io_context io_;
    asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
    asio::thread_pool pool_{4};
    std::thread thread_;
    std::unique_ptr<LocalNode> node_;
};

// Whatever a test did: nothing is left of it.
class RestartTest : public ::testing::Test {
  protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "machines are made by root";
        auto base = TemplateStore(templates_folder()).find("base");
        if (!base) GTEST_SKIP() << "no template 'base'";
        ASSERT_OK(make_dirs(data_));
        auto vmm = engine::prepare_vmm_root(data_ / "vmm");
        ASSERT_OK(vmm);
        if (vmm->id != base->manifest.vmm_id) GTEST_SKIP() << "the template is of another QEMU";
        instance_ = *instance_of(data_);
        tag_ = net::instance_tag(instance_);
        metric_ = fmt::format("metric {}", 0x67620000U | tag_);  // of this instance's route
    }
    // Whatever a test did: a server that starts and ends leaves nothing.
    void TearDown() override {
        if (instance_.empty()) return;
        {
            Server last(data_);
            ASSERT_TRUE(last.opened()) << last.error.message;
        }
        EXPECT_THAT(groups(), IsEmpty());
        EXPECT_THAT(engine::find_stray_vmms(data_ / "vmm"), IsEmpty());
        EXPECT_THAT(tables(), Not(HasSubstr(net::host_table(tag_))));
        EXPECT_THAT(run_checked({"ip", "route", "show", "type", "unreachable"})->out,
                    Not(HasSubstr(metric_)));
        EXPECT_THAT(run_checked({"mount"})->out, Not(HasSubstr(data_.string())));
        // The kernel removes a namespace's devices in its own time.
        EXPECT_TRUE(test::eventually([this] { return links() == 0; }));
        for (const auto& root : engine::detect_cgroup_layout()->roots())
            ::rmdir((root / "glovebox" / instance_).c_str());
        (void)remove_tree(data_);
    }

    SandboxSpec spec() const {
        SandboxSpec out;
        out.id = id_;
        out.template_id = "base";
        out.network.deny_out = {"8.8.8.0/24"};
        return out;
    }
    // What a server does until it is killed.
    template <class F>
    void in_killed_server(F body) {
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        UniqueFd read_end(ends[0]), write_end(ends[1]);
        const pid_t child = ::fork();
        if (child == 0) {
            Server server(data_, warm_);
            std::string text = server.error.message;
            if (server.opened()) {
                Status status = body(server);
                text = status ? "ok" : status.error().message;
            }
            (void)write_all(write_end.get(), text);
            for (;;) ::pause();
        }
        write_end.reset();
        char text[512];
        const ssize_t n = ::read(read_end.get(), text, sizeof text);
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        ASSERT_EQ(std::string(text, static_cast<std::size_t>(std::max<ssize_t>(n, 0))), "ok");
    }
    void create_in_killed_server() {
        ASSERT_NO_FATAL_FAILURE(
            in_killed_server([&](Server& server) { return server.run(server.node().create(spec())); }));
        ASSERT_EQ(engine::find_stray_vmms(data_ / "vmm").size(), 1U) << "the machine died with its server";
        pid_ = engine::find_stray_vmms(data_ / "vmm").front();
    }
    // The guest of the one machine there is, reached without the server.
    static AgentClient agent_of(pid_t machine) {
        return AgentClient([pid = machine]() -> Result<UniqueFd> {
            GB_TRY_ASSIGN(UniqueFd netns, net::netns_of(pid));
            GB_TRY_ASSIGN(net::NetnsScope scope, net::NetnsScope::enter(netns.get()));
            return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        });
    }
    CommandResult guest(const std::string& command) const {
        auto result = agent_of(pid_).run(command, "user", 30s);
        EXPECT_TRUE(result.has_value()) << result.error().message;
        return result.value_or(CommandResult{.exit_code = -1});
    }
    // The decision log, once it has a line with all of `parts`: the kernel hands decisions over in batches.
    static std::vector<std::string> decisions(Server& server, const std::string& id,
                                              const std::vector<std::string>& parts) {
        std::vector<std::string> lines;
        (void)test::eventually([&] {
            lines = server.node().decisions_after(id, "", 100)->lines;
            return std::ranges::any_of(lines, [&](const std::string& line) {
                return std::ranges::all_of(parts,
                                           [&](const std::string& part) { return line.contains(part); });
            });
        });
        return lines;
    }
    // How a connection to an address that the policy denies ends.
    std::string denied() const { return guest("timeout 5 bash -c 'exec 3<>/dev/tcp/8.8.8.8/443' 2>&1").out; }

    [[nodiscard]] std::vector<std::string> groups() const {
        return engine::list_cgroups(*engine::detect_cgroup_layout(), instance_);
    }
    static std::string tables() { return run_checked({"nft", "list", "tables"})->out; }
    [[nodiscard]] std::size_t links() const {
        const std::string all = run_checked({"ip", "-o", "link"})->out;
        std::size_t count = 0;
        for (std::size_t at = 0; (at = all.find(net::host_link_prefix(tag_), at)) != std::string::npos; ++at)
            ++count;
        return count;
    }
    [[nodiscard]] fs::path file(std::string_view name) const { return data_ / "sandboxes" / id_ / name; }

    const std::string id_ = "i" + random_id(19);
    fs::path data_ = fs::temp_directory_path() / ("glovebox-restart-" + random_id(8));
    WarmOptions warm_;  // of servers that are killed
    std::string instance_, metric_;
    std::uint16_t tag_ = 0;
    pid_t pid_ = -1;
};

}  // namespace gb::live
