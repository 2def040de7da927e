// SPDX-License-Identifier: Apache-2.0
// The node of this machine: sandboxes as processes here. Blocking work runs on the pool, watching on the
// executor.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/unique_fd.h"
#include "egress/service.h"
#include "net/slot_pool.h"
#include "node/disk_retry.h"
#include "node/machinery.h"
#include "node/node.h"
#include "node/on_demand.h"
#include "node/sandbox_machine.h"
#include "node/snapshot_store.h"
#include "node/template_store.h"
#include "node/warm_pool.h"

namespace gb {

class LocalNode final : public Node {
  public:
    // Takes the data folder for itself (already_exists when another server has it), finds the machines that the
    // last one left there, and makes the first slots. On an error machines run on. Taking them over begins when the
    // executor runs, and everything else that was left is ended meanwhile: see taken_over(). Until that is gone,
    // whatever starts a machine waits.
    static Result<std::unique_ptr<LocalNode>> open(boost::asio::any_io_executor executor,
                                                   boost::asio::thread_pool& pool, NodeOptions options);
    ~LocalNode() override;

    Result<std::vector<TemplateInfo>> templates() override;
    Error absent_template(const std::string& name) override;
    boost::asio::awaitable<Status> create(SandboxSpec spec) override;
    boost::asio::awaitable<Status> pause(std::string id, PauseMode mode) override;
    boost::asio::awaitable<Status> resume(SandboxSpec spec) override;
    boost::asio::awaitable<Status> snapshot(SnapshotSpec spec) override;
    boost::asio::awaitable<Status> remove_snapshot(std::string build_id) override;
    Result<std::vector<std::string>> snapshots() override { return snapshots_.list(); }
    Result<std::vector<HeldSandbox>> held() override;
    boost::asio::awaitable<void> taken_over(std::string id) override;
    void leave_running() override;
    boost::asio::awaitable<Status> destroy(std::string id) override;
    boost::asio::awaitable<Result<boost::asio::ip::tcp::socket>> connect(std::string id,
                                                                         std::uint16_t port) override;
    boost::asio::awaitable<Result<Telemetry>> telemetry(std::string id, std::uint64_t after) override;
    Result<NodeInfo> info() override;
    Result<Isolation> isolation(const std::string& id) override;
    Result<SandboxUsage> usage(const std::string& id) override;
    Result<std::vector<DiskUse>> disk_use() override;
    boost::asio::awaitable<Status> set_network(std::string id, NetworkRequest network) override;
    Result<EffectiveNetwork> network(const std::string& id) override;
    void use_secrets(SecretSource source) override;
    Result<DecisionPage> decisions_after(const std::string& id, const std::string& after,
                                         std::size_t limit) override;
    void on_exit(std::function<void(std::string, std::string)> callback) override {
        on_exit_ = std::move(callback);
    }

  private:
    struct Watched;
    LocalNode(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool, NodeOptions options);
    [[nodiscard]] std::shared_ptr<Watched> find_watched(const std::string& id) const;
    [[nodiscard]] std::shared_ptr<SandboxMachine> find(const std::string& id) const;
    Result<std::shared_ptr<SandboxMachine>> make(const SandboxSpec& spec);
    Result<std::shared_ptr<SandboxMachine>> make_again(const SandboxSpec& spec);
    [[nodiscard]] Status check_vmm(const Manifest& manifest) const;
    [[nodiscard]] Status check_memory(const Manifest& manifest) const;
    // The same, after warm sandboxes have made room.
    Status make_room(const Manifest& manifest);
    // One from the pool, or else an ordinary restore: nobody sees that the pool had a bad one.
    Result<std::shared_ptr<SandboxMachine>> take_or_start(const StoredTemplate& from, const SandboxSpec& spec,
                                                          const net::EgressPolicy& policy);
    void open_warm_pool();
    [[nodiscard]] SandboxMachine::Parts parts() {
        return {machinery_, *slots_, options_.data_dir / "sandboxes", archive(), *egress_, secrets_};
    }
    [[nodiscard]] SandboxFolder folder_of(const std::string& id) const {
        return SandboxFolder(options_.data_dir / "sandboxes" / id);
    }
    [[nodiscard]] std::filesystem::path archive() const { return options_.data_dir / "decisions"; }
    [[nodiscard]] Result<std::filesystem::path> decision_log_of(const std::string& id) const;
    void sweep_archive();
    Status start_egress();
    Status start();
    // Each survivor on one of a few threads, and then, on the executor, taken in.
    void begin_take_over();
    void take_over_some();
    void end_take_over(const std::string& id);
    // Ends and removes, on a thread of its own, what no sandbox is made of.
    void begin_clearing(std::vector<std::filesystem::path> abandoned);
    [[nodiscard]] Status cleared() const { return std::shared_future<Status>(cleared_).get(); }  // waits for its end
    [[nodiscard]] bool being_taken_over(const std::string& id) const;  // empty: any
    // Watches a machine that runs and takes it in. On an error it runs unwatched, which it must not for long.
    Status take_in(const std::shared_ptr<SandboxMachine>& machine);
    using Socket = boost::asio::ip::tcp::socket;
    boost::asio::awaitable<boost::system::error_code> bounded(
        std::weak_ptr<Watched> sandbox, std::shared_ptr<Socket> socket, std::chrono::milliseconds limit,
        boost::asio::awaitable<boost::system::error_code> step);
    // `why` says what the guest's kernel answered.
    boost::asio::awaitable<Result<std::shared_ptr<Socket>>> dial(std::string id, std::uint16_t port,
                                                                 std::chrono::milliseconds limit,
                                                                 boost::system::error_code& why);
    void watch_exit(const std::shared_ptr<Watched>& watched);
    void watch(const std::shared_ptr<Watched>& watched);
    void watch_decisions(const std::shared_ptr<Watched>& watched,
                         boost::asio::posix::stream_descriptor Watched::* descriptor);
    void watch_host();

    boost::asio::any_io_executor executor_;
    boost::asio::thread_pool& pool_;
    NodeOptions options_;
    boost::asio::steady_timer sweep_timer_;
    UniqueFd lock_;  // of the data folder
    Machinery machinery_;
    SecretSource secrets_ = [this](const std::string& id, const std::string& name) -> Result<std::string> {
        if (!given_secrets_) return fail(ErrorCode::not_found, "this server has no secrets");
        return given_secrets_(id, name);
    };
    SecretSource given_secrets_;
    TemplateStore templates_;
    OnDemand on_demand_;
    SnapshotStore snapshots_;
    std::unique_ptr<net::SlotPool> slots_;
    std::unique_ptr<egress::EgressService> egress_;
    std::unique_ptr<WarmPool> warm_;
    std::atomic<std::uint64_t> creates_from_pool_ = 0, creates_from_restore_ = 0;
    std::shared_ptr<Watched> host_watch_;
    mutable std::mutex mutex_;
    std::unordered_map<std::string, std::shared_ptr<Watched>> sandboxes_;
    using TakenOver = Result<std::shared_ptr<SandboxMachine>>;
    std::unordered_set<std::string> to_take_over_;            // under mutex_: until they are in sandboxes_ or gone
    std::unordered_map<std::string, TakenOver> taken_over_;   // under mutex_: to be taken in by the executor
    bool leaving_ = false;                                    // under mutex_
    boost::asio::steady_timer took_over_;                     // never expires; cancelled with each that is done
    std::shared_ptr<bool> here_ = std::make_shared<bool>();   // gone when this is
    std::vector<std::jthread> takers_;
    std::shared_future<Status> cleared_;  // when all is gone that was not taken over
    std::jthread clearing_;
    std::function<void(std::string, std::string)> on_exit_;
    std::unique_ptr<DiskRetry> disk_retry_;
};

}  // namespace gb
