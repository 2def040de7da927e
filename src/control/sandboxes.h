// SPDX-License-Identifier: Apache-2.0
// The sandboxes of this installation: create, find, extend, pause, resume, kill, on time. Lives on one executor (the
// event loop); every method is called there. What a call answers is in the store before it answers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/result.h"
#include "control/listing.h"
#include "control/plans.h"
#include "control/rate_limit.h"
#include "control/retention.h"
#include "control/sandbox_network.h"
#include "control/templates.h"
#include "node/node.h"
#include "store/store.h"

namespace gb {

struct CreateSandbox {
    std::string template_ref;  // id or name, with an optional ":default"
    int timeout_s = 300;
    bool secure = true;
    bool auto_pause = false;
    bool auto_pause_memory = true;
    bool auto_resume = false;
    bool public_traffic = true;
    std::string mask_request_host;
    std::map<std::string, std::string> metadata;
    std::map<std::string, std::string> env_vars;
    NetworkRequest network;
    std::string network_json;  // as the client wrote it without any password, given back by get
};

// A sandbox as its team sees it.
struct SandboxView {
    SandboxRecord record;
    std::string access_token;   // empty when the sandbox is not secured
    std::string traffic_token;  // empty when its ports are public
    bool resumed = false;       // by this call
};

// A sandbox as the ingress sees it, whoever owns it.
struct Destination {
    enum class State { running, in_transition, asleep } state = State::asleep;
    bool wakes = false;             // traffic may wake it
    std::string access_token;       // empty: not secured
    std::string traffic_token;      // empty: public
    std::string mask_request_host;  // empty: as the client wrote it
};

struct SandboxesOptions {
    std::string seed;  // secret from which tokens are derived; the same over restarts
    Plans plans;
    Retention retention;
    std::shared_ptr<const Sealer> sealer;  // of passwords that rows keep; without it there can be none
};

class Sandboxes {
  public:
    // `pool` is for reads of the store and the node that block for a moment.
    Sandboxes(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool, Store& store, Node& node,
              SandboxesOptions options);
    ~Sandboxes();

    // Brings rows and machines of before this start together: what runs goes on with its timer, what is paused stays,
    // what is in only one of the two ends. Blocking; before anything else.
    Status start();

    // resource_exhausted names the limit; create_retry_after_s() then says when to come again.
    boost::asio::awaitable<Result<SandboxView>> create(Team team, CreateSandbox request);
    [[nodiscard]] int create_retry_after_s(const Team& team) const;
    // Another team's sandbox is not_found, like one that never was.
    Result<SandboxView> get(const Team& team, std::string_view id) const;
    Result<ListPage> list(const Team& team, const ListQuery& query) const;
    // Wakes it if it is paused (`resumed`), waits while it is being paused; never shortens.
    // invalid_argument when its saved memory is not wanted: the file system below it is not one to boot from.
    enum class Memory { kept, dropped };
    boost::asio::awaitable<Result<SandboxView>> connect(Team team, std::string id, std::int64_t timeout_s,
                                                        Memory memory = Memory::kept);
    // The same for a paused one only; failed_precondition when it runs.
    boost::asio::awaitable<Result<SandboxView>> resume(Team team, std::string id, std::int64_t timeout_s);
    // From now on, both ways; 0 or less ends it at once. not_found unless it runs.
    boost::asio::awaitable<Status> set_timeout(Team team, std::string id, std::int64_t timeout_s);
    // Only ever later; what goes beyond the plan is cut. not_found unless it runs.
    boost::asio::awaitable<Status> extend(Team team, std::string id, std::int64_t timeout_s);
    // Replaces everything that its network says of the way out: at once where it runs, from its resume on
    // where it is paused. Waits for the end of a transition; of several, the last one that asked stays. The
    // machine and the store agree, also after an error.
    boost::asio::awaitable<Status> set_network(Team team, std::string id, NetworkUpdate update);
    // failed_precondition when it is paused or being paused.
    // unavailable when it shall be sure that the guest answers and it does not.
    enum class Guest { any, must_answer };
    boost::asio::awaitable<Status> pause(Team team, std::string id, PauseMode mode, Guest guest = Guest::any);
    // Several at once all succeed when it is gone; afterwards it is not_found.
    boost::asio::awaitable<Status> kill(Team team, std::string id);

    // Copies a running sandbox; it runs on. `name` may be empty. failed_precondition when one is being taken already, or
    // it is paused.
    boost::asio::awaitable<Result<Snapshot>> snapshot(Team team, std::string id, std::string name,
                                                      PauseMode mode = PauseMode::with_memory);
    // Copies a running sandbox so many times: each runs, as its own sandbox, from the same moment on, or says why not.
    boost::asio::awaitable<Result<std::vector<Result<SandboxView>>>> fork(Team team, std::string id, int count,
                                                                          std::int64_t timeout_s);
    Templates& templates() { return templates_; }
    // Whether a running or paused sandbox was started from it.
    [[nodiscard]] bool uses_build(const std::string& build_id) const;
    // Warns of paused sandboxes that will be removed, and removes those whose time is over. One at a time;
    // returns when all is done or the server stops. Not to be cancelled.
    boost::asio::awaitable<void> apply_retention(std::int64_t now);
    [[nodiscard]] const Retention& retention() const { return options_.retention; }

    // Kills everything that runs, for a shutdown; paused ones stay. From here on nothing is made or woken.
    boost::asio::awaitable<void> kill_all();
    // The other way to stop: waits for what is under way, then leaves the machines to the next server.
    boost::asio::awaitable<void> leave_running();

    // For the ingress. Nothing: no such sandbox.
    [[nodiscard]] std::optional<Destination> destination(std::string_view id) const;
    [[nodiscard]] bool is_running(std::string_view id) const;
    // Waits until a transition is over; then a sandbox that sleeps is woken, if it wakes on traffic and the caller may
    // wake it, or not_found. Success: it runs.
    enum class Waking { allowed, refused };
    boost::asio::awaitable<Status> wake(std::string id, Waking waking = Waking::allowed);
    // The running sandbox whose access token `accepts` says yes to.
    [[nodiscard]] std::optional<std::string> find_by_token(
        const std::function<bool(std::string_view token)>& accepts) const;
    // Called with the id of every sandbox that stops running, before its machine does.
    void on_gone(std::function<void(const std::string&)> callback) { on_gone_ = std::move(callback); }
    // Awaited after that, before the machine is ended or saved: pauses and kills take longer by it. Not when
    // the machine ended by itself.
    void before_end(std::function<boost::asio::awaitable<void>(SandboxRecord)> hook) {
        before_end_ = std::move(hook);
    }

    struct Counts {
        std::size_t running = 0, paused = 0, in_transition = 0;
    };
    [[nodiscard]] Counts counts() const;
    // Those that run now.
    [[nodiscard]] std::vector<SandboxRecord> running_sandboxes() const;

    Node& node() { return node_; }
    [[nodiscard]] const Plans& plans() const { return options_.plans; }

    // Ids may carry the suffix of older clients ("<id>-<client>"); this is the id alone.
    static std::string canonical_id(std::string_view id);

  private:
    struct Entry;
    class Turn;
    using EntryPtr = std::shared_ptr<Entry>;
    enum class Direction { both_ways, only_later };
    enum class Ending { asked, by_itself };

    [[nodiscard]] Result<EntryPtr> find(const Team& team, std::string_view id) const;
    [[nodiscard]] Result<EntryPtr> find_to_copy(const Team& team, std::string_view id) const;
    [[nodiscard]] Status check_lifetime(const Plan& plan, std::int64_t timeout_s) const;
    [[nodiscard]] Status check_place(const std::string& team_id, const Plan& plan, int count = 1) const;
    Status check_rate(const Team& team, const Plan& plan);
    // Starts the machine of an entry that is being created, and its first run. On an error the entry is gone.
    boost::asio::awaitable<Result<SandboxView>> bring_up(EntryPtr entry, std::string snapshot_build);
    EntryPtr make_entry(SandboxRecord record);
    void forget(Entry& entry);
    void start_run(Entry& entry, std::int64_t now, std::int64_t ends_ms);
    boost::asio::awaitable<void> settle(EntryPtr entry) const;
    boost::asio::awaitable<Status> move_end(EntryPtr entry, std::int64_t ends_ms, Direction direction);
    boost::asio::awaitable<Status> end(EntryPtr entry, std::string reason, Ending ending = Ending::asked);
    boost::asio::awaitable<Turn> take_turn(EntryPtr entry);
    boost::asio::awaitable<void> put_back_network(EntryPtr entry);
    void restore_proxies();
    [[nodiscard]] const Sealer* sealer() const { return options_.sealer.get(); }
    Status give_network(const Entry& source, const std::vector<EntryPtr>& forks) const;
    boost::asio::awaitable<Status> pause_entry(EntryPtr entry, PauseMode mode, Turn turn);
    boost::asio::awaitable<Status> resume_entry(EntryPtr entry, int timeout_s);
    boost::asio::awaitable<void> lifetime_over(EntryPtr entry);
    boost::asio::awaitable<void> warn_of_removal(EntryPtr entry, std::int64_t now);
    void arm(const EntryPtr& entry);
    void arm_or_end(const EntryPtr& entry);
    boost::asio::awaitable<Result<Plan>> plan_of(std::string team_id);
    void exited(const std::string& id, const std::string& reason);
    [[nodiscard]] SandboxView view(const Entry& entry) const;
    [[nodiscard]] Result<SandboxSpec> spec_of(const Entry& entry) const;
    Status adopt_row(SandboxRecord row, std::optional<bool> held_running, const SandboxRun* open_run);

    boost::asio::any_io_executor executor_;
    boost::asio::thread_pool& pool_;
    Store& store_;
    Node& node_;
    SandboxesOptions options_;
    Templates templates_;
    std::unordered_map<std::string, EntryPtr> entries_;
    std::unordered_map<std::string, std::shared_ptr<int>> places_;  // taken, by team
    std::unordered_map<std::string, RateLimit> creates_;            // by team
    bool stopping_ = false;
    std::function<void(const std::string&)> on_gone_;
    std::function<boost::asio::awaitable<void>(SandboxRecord)> before_end_;
};

}  // namespace gb
