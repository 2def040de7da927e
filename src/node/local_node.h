// The node of this machine: sandboxes as processes here. Blocking work runs on the pool, watching on the executor.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/unique_fd.h"
#include "net/slot_pool.h"
#include "node/machinery.h"
#include "node/node.h"
#include "node/sandbox_machine.h"
#include "node/template_store.h"

namespace gb {

class LocalNode final : public Node {
  public:
    // Takes the data folder for itself (already_exists when another server has it), reclaims what a dead server left
    // there, and makes the first slots.
    static Result<std::unique_ptr<LocalNode>> open(boost::asio::any_io_executor executor,
                                                   boost::asio::thread_pool& pool, NodeOptions options);
    ~LocalNode() override;

    Result<std::vector<TemplateInfo>> templates() override;
    boost::asio::awaitable<Status> create(SandboxSpec spec) override;
    boost::asio::awaitable<Status> pause(std::string id, PauseMode mode) override;
    boost::asio::awaitable<Status> resume(SandboxSpec spec) override;
    Result<std::vector<HeldSandbox>> held() override;
    void leave_running() override;
    boost::asio::awaitable<Status> destroy(std::string id) override;
    boost::asio::awaitable<Result<boost::asio::ip::tcp::socket>> connect(std::string id, std::uint16_t port) override;
    boost::asio::awaitable<Result<Telemetry>> telemetry(std::string id, std::uint64_t after) override;
    Result<NodeInfo> info() override;
    Result<Isolation> isolation(const std::string& id) override;
    Result<SandboxUsage> usage(const std::string& id) override;
    Result<std::vector<std::string>> decisions(const std::string& id, std::size_t limit) override;
    void on_exit(std::function<void(std::string, std::string)> callback) override { on_exit_ = std::move(callback); }

  private:
    struct Watched;
    LocalNode(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool, NodeOptions options);
    [[nodiscard]] std::shared_ptr<Watched> find_watched(const std::string& id) const;
    [[nodiscard]] std::shared_ptr<SandboxMachine> find(const std::string& id) const;
    Result<std::shared_ptr<SandboxMachine>> make(const SandboxSpec& spec);
    boost::asio::awaitable<Result<boost::asio::ip::tcp::socket>> dial(std::string id, std::uint16_t port,
                                                                      std::chrono::milliseconds limit);
    void watch(const std::shared_ptr<Watched>& watched);
    void watch_host();

    boost::asio::any_io_executor executor_;
    boost::asio::thread_pool& pool_;
    NodeOptions options_;
    UniqueFd lock_;  // of the data folder
    Machinery machinery_;
    TemplateStore templates_;
    std::unique_ptr<net::SlotPool> slots_;
    std::shared_ptr<Watched> host_watch_;
    mutable std::mutex mutex_;
    std::unordered_map<std::string, std::shared_ptr<Watched>> sandboxes_;
    std::function<void(std::string, std::string)> on_exit_;
};

}  // namespace gb
