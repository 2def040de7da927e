// SPDX-License-Identifier: Apache-2.0
// A node without machines, for tests of what stands above the node: its calls succeed, fail or wait as a test
// says.
#pragma once

#include <atomic>
#include <map>
#include <set>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "node/node.h"

namespace gb {

class FakeNode : public Node {
  public:
    Result<std::vector<TemplateInfo>> templates() override {
        return std::vector<TemplateInfo>{{"tbase", "base", "build", 1, 512, 4096, 1}};
    }
    Error absent_template(const std::string& name) override {
        if (name == preparing) return {ErrorCode::unavailable, "template '" + name + "' is being prepared"};
        return {ErrorCode::not_found, "template '" + name + "' not found"};
    }
    std::string preparing;  // a template that is
    boost::asio::awaitable<Status> create(SandboxSpec spec) override {
        co_await wait(create_delay_ms);
        if (create_error) co_return std::unexpected(*create_error);
        if (!spec.snapshot_build.empty() && !snapshot_builds.contains(spec.snapshot_build))
            co_return fail(ErrorCode::not_found, "no such snapshot");
        last_spec = spec;
        machines.insert(spec.id);
        networks[spec.id] = spec.network;
        if (after_create) after_create(spec.id);
        co_return Status{};
    }
    boost::asio::awaitable<Status> destroy(std::string id) override {
        co_await wait(destroy_delay_ms);
        ++destroyed;
        machines.erase(id);
        paused.erase(id);
        co_return Status{};
    }
    boost::asio::awaitable<Status> pause(std::string id, PauseMode) override {
        co_await wait(pause_delay_ms);
        if (pause_error) co_return std::unexpected(*pause_error);
        if (machines.erase(id) == 0) co_return fail(ErrorCode::not_found, "no such sandbox");
        paused.insert(id);
        co_return Status{};
    }
    boost::asio::awaitable<Status> resume(SandboxSpec spec) override {
        co_await wait(create_delay_ms);
        if (create_error) co_return std::unexpected(*create_error);
        if (paused.erase(spec.id) == 0) co_return fail(ErrorCode::not_found, "no such sandbox");
        last_spec = spec;
        machines.insert(spec.id);
        networks[spec.id] = spec.network;
        co_return Status{};
    }
    boost::asio::awaitable<Status> snapshot(SnapshotSpec spec) override {
        co_await wait(snapshot_delay_ms);
        if (snapshot_error) co_return std::unexpected(*snapshot_error);
        if (!machines.contains(spec.sandbox_id)) co_return fail(ErrorCode::not_found, "no such sandbox");
        snapshot_builds.insert(spec.build_id);
        last_snapshot = std::move(spec);
        co_return Status{};
    }
    boost::asio::awaitable<Status> remove_snapshot(std::string build_id) override {
        snapshot_builds.erase(build_id);
        co_return Status{};
    }
    Result<std::vector<std::string>> snapshots() override {
        return std::vector<std::string>(snapshot_builds.begin(), snapshot_builds.end());
    }
    Result<std::vector<HeldSandbox>> held() override {
        std::vector<HeldSandbox> out;
        for (const std::string& id : machines) out.push_back({id, true});
        for (const std::string& id : paused) out.push_back({id, false});
        return out;
    }
    boost::asio::awaitable<void> taken_over(std::string) override { co_return; }
    void leave_running() override {}
    boost::asio::awaitable<Result<boost::asio::ip::tcp::socket>> connect(std::string id,
                                                                         std::uint16_t port) override {
        if (!machines.contains(id)) co_return fail(ErrorCode::not_found, "no such sandbox");
        boost::asio::ip::tcp::socket socket(co_await boost::asio::this_coro::executor);
        boost::system::error_code ec;
        socket.connect({boost::asio::ip::make_address("127.0.0.1"), port}, ec);
        if (ec) co_return fail(ErrorCode::unavailable, ec.message());
        co_return socket;
    }
    boost::asio::awaitable<Result<Telemetry>> telemetry(std::string id, std::uint64_t after) override {
        ++telemetry_calls[id];
        co_await wait(hung.contains(id) ? 2000 : telemetry_delay_ms);
        ++telemetry_answered[id];
        if (hung.contains(id)) co_return fail(ErrorCode::deadline_exceeded, "no answer");
        if (!machines.contains(id)) co_return fail(ErrorCode::not_found, "no such sandbox");
        co_return telemetry_answer ? telemetry_answer(id, after) : Telemetry{.next = after};
    }
    Result<NodeInfo> info() override { return NodeInfo{.id = "fake"}; }
    Result<Isolation> isolation(const std::string&) override { return Isolation{}; }
    Result<SandboxUsage> usage(const std::string&) override { return SandboxUsage{}; }
    Result<std::vector<DiskUse>> disk_use() override {
        ++disk_walks;
        std::vector<DiskUse> out;
        for (const auto& [id, bytes] : disk)
            if (machines.contains(id) || paused.contains(id)) out.push_back({.id = id, .bytes = bytes});
        return out;
    }
    boost::asio::awaitable<Status> set_network(std::string id, NetworkRequest network) override {
        co_await wait(network_delay_ms);
        if (network_error) co_return std::unexpected(*network_error);
        if (!machines.contains(id)) co_return fail(ErrorCode::not_found, "no such sandbox");
        networks[id] = std::move(network);
        co_return Status{};
    }
    Result<EffectiveNetwork> network(const std::string& id) override {
        if (!machines.contains(id)) return fail(ErrorCode::not_found, "no such sandbox");
        return EffectiveNetwork{.allow_out = networks[id].allow_out, .deny_out = networks[id].deny_out};
    }
    void use_secrets(SecretSource source) override { secrets = std::move(source); }
    Result<DecisionPage> decisions_after(const std::string& id, const std::string& after,
                                         std::size_t limit) override {
        const std::vector<std::string>& all = decision_lines[id];
        DecisionPage page;
        const std::size_t begin = after.empty() ? 0 : std::stoul(after);
        for (std::size_t at = begin; at < all.size() && page.lines.size() < limit; ++at)
            page.lines.push_back(all[at]);
        page.next = std::to_string(begin + page.lines.size());
        return page;
    }
    void on_exit(std::function<void(std::string, std::string)> callback) override {
        exited = std::move(callback);
    }

    std::map<std::string, NetworkRequest> networks;  // by sandbox, as set_network() was told last
    int network_delay_ms = 0;
    std::optional<Error> network_error;
    SecretSource secrets;
    std::map<std::string, std::vector<std::string>> decision_lines;
    int create_delay_ms = 0;
    int destroy_delay_ms = 0;
    int pause_delay_ms = 0;
    int telemetry_delay_ms = 0;
    int snapshot_delay_ms = 0;
    std::optional<Error> snapshot_error;
    std::set<std::string> snapshot_builds;
    SnapshotSpec last_snapshot;
    std::set<std::string> hung;                                      // guests that do not answer
    std::map<std::string, int> telemetry_calls, telemetry_answered;  // by sandbox: begun, ended
    std::function<Result<Telemetry>(const std::string&, std::uint64_t)> telemetry_answer;
    int destroyed = 0;
    std::atomic<int> disk_walks = 0;
    std::map<std::string, std::uint64_t> disk;  // bytes by sandbox
    std::optional<Error> create_error;
    std::optional<Error> pause_error;
    SandboxSpec last_spec;
    std::set<std::string> machines;
    std::set<std::string> paused;
    std::function<void(std::string, std::string)> exited;
    std::function<void(const std::string&)> after_create;

  private:
    static boost::asio::awaitable<void> wait(int ms) {
        boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor,
                                        std::chrono::milliseconds(ms));
        co_await timer.async_wait(boost::asio::use_awaitable);
    }
};

}  // namespace gb
