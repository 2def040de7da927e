// The sandboxes of this installation: create, find, extend, kill, on time. Lives on one executor (the event
// loop); every method is called there. State that clients may rely on is in the store before a call succeeds.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/result.h"
#include "control/listing.h"
#include "node/node.h"
#include "store/store.h"

namespace gb {

struct CreateSandbox {
    std::string template_ref;  // id or name, with an optional ":default"
    int timeout_s = 300;
    bool secure = true;
    std::map<std::string, std::string> metadata;
    std::map<std::string, std::string> env_vars;
    NetworkRequest network;
    std::string network_json;  // as the client wrote it, given back by get
};

// A sandbox as a caller sees it.
struct SandboxView {
    SandboxRecord record;
    std::string access_token;  // empty when the sandbox is not secured
};

class Sandboxes {
  public:
    // `seed` is the secret from which tokens are derived; it must stay the same over restarts.
    Sandboxes(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool, Store& store, Node& node,
              std::string seed);
    ~Sandboxes();

    // Forgets what ran before this start (the node has reclaimed it) and begins to watch the node.
    Status start();

    boost::asio::awaitable<Result<SandboxView>> create(Team team, CreateSandbox request);
    // A running sandbox of that team. Another team's is not_found, like one that never was.
    Result<SandboxView> get(const Team& team, std::string_view id);
    Result<ListPage> list(const Team& team, const ListQuery& query);
    // Never shortens. Returns the sandbox.
    boost::asio::awaitable<Result<SandboxView>> connect(Team team, std::string id, int timeout_s);
    // From now on, both ways; 0 or less ends it at once.
    boost::asio::awaitable<Status> set_timeout(Team team, std::string id, std::int64_t timeout_s);
    boost::asio::awaitable<Status> kill(Team team, std::string id);
    // Kills everything, for a shutdown; from here on no sandbox is made. Returns when nothing is left.
    boost::asio::awaitable<void> kill_all();

    // For the ingress: whether a sandbox of that id runs, whoever owns it.
    [[nodiscard]] bool is_running(std::string_view id) const;
    // The running sandbox whose access token `accepts` says yes to.
    [[nodiscard]] std::optional<std::string> find_by_token(
        const std::function<bool(std::string_view token)>& accepts) const;
    // Called with the id of every sandbox that is going away, before its machine ends.
    void on_gone(std::function<void(const std::string&)> callback) { on_gone_ = std::move(callback); }

    Node& node() { return node_; }

    // Ids may carry the suffix of older clients ("<id>-<client>"); this is the id alone.
    static std::string canonical_id(std::string_view id);

  private:
    struct Entry;
    using Entries = std::unordered_map<std::string, std::shared_ptr<Entry>>;

    Result<std::shared_ptr<Entry>> find(const Team& team, std::string_view id) const;
    Result<TemplateInfo> resolve(std::string_view template_ref);
    boost::asio::awaitable<Status> save(SandboxRecord record);
    enum class Move { both_ways, only_later };
    boost::asio::awaitable<Status> move_end(std::shared_ptr<Entry> entry, std::int64_t ends_ms, Move move);
    boost::asio::awaitable<Status> end(std::shared_ptr<Entry> entry, std::string reason);
    void arm(const std::shared_ptr<Entry>& entry);
    void exited(const std::string& id, const std::string& reason);
    SandboxView view(const Entry& entry) const;

    boost::asio::any_io_executor executor_;
    boost::asio::thread_pool& pool_;
    Store& store_;
    Node& node_;
    std::string seed_;
    Entries entries_;
    bool stopping_ = false;
    std::function<void(const std::string&)> on_gone_;
};

}  // namespace gb
