// SPDX-License-Identifier: Apache-2.0
// What sandboxes can be started from: the templates that the node has for everybody, and those of teams,
// which are snapshots of sandboxes. Lives on the event loop; what a call answers is in the store before it
// answers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/result.h"
#include "control/retention.h"
#include "control/template_name.h"
#include "node/node.h"
#include "store/store.h"

namespace gb {

struct StartPoint {
    TemplateInfo info;
    std::string snapshot_build;  // empty: the node's newest build of it
};

// A snapshot as its team sees it: one tag of a template.
struct Snapshot {
    std::string id;                  // "<slug>/<name>:<tag>", or "<template id>:<tag>" when it has no name
    std::vector<std::string> names;  // "<slug>/<name>"
    BuildRecord build;
    std::string tag;
};

struct SnapshotQuery {
    std::string sandbox_id;  // empty: of all
    std::string name;        // as in SnapshotInfo, with or without namespace and tag; empty: all
    std::size_t limit = 100;
    std::string next_token;  // opaque; empty: the first page
};

struct SnapshotPage {
    std::vector<Snapshot> items;  // newest first
    std::string next_token;       // empty on the last page
};

class Templates {
  public:
    Templates(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool, Store& store, Node& node)
        : executor_(std::move(executor)), pool_(pool), store_(store), node_(node) {}

    // Reads the rows, and has the node remove snapshots that have none: those were never answered. Blocks.
    Status start();

    // A name stands for the team's own template before it stands for one of everybody's. not_found names what
    // is not there; permission_denied: another team's. One that is wanted to start a sandbox of and that the node could
    // make is unavailable, and on its way (Node::absent_template).
    enum class Wanted { to_know, to_start };
    boost::asio::awaitable<Result<StartPoint>> find(Team team, std::string ref, Wanted wanted);

    // A snapshot that is about to be taken; nothing of it is stored yet. `name` may be empty.
    // failed_precondition: one of that name is being taken.
    struct Draft {
        TemplateRecord row;
        BuildRecord build;
        TagRecord tag;
        std::shared_ptr<void> name_kept;  // nobody else takes the name while this is held
    };
    Result<Draft> draft(const Team& team, const SandboxRecord& of, const std::string& name);
    // Its build is on the node now. Another build that lost its last tag by this is removed.
    boost::asio::awaitable<Result<Snapshot>> publish(Team team, Draft draft, Event event);

    Result<SnapshotPage> snapshots(const Team& team, const SnapshotQuery& query) const;

    // Removes one tag, with its build when that was the last one, or without a tag the whole template.
    // failed_precondition while `in_use` says so of a build that would go.
    using InUse = std::function<bool(const std::string& build_id)>;
    boost::asio::awaitable<Status> remove(Team team, std::string ref, InUse in_use);

    // Gives the tags to the build that `target` names.
    struct Assigned {
        std::string build_id;
        std::vector<std::string> tags;
    };
    boost::asio::awaitable<Result<Assigned>> assign_tags(Team team, std::string target,
                                                         std::vector<std::string> tags);
    boost::asio::awaitable<Status> remove_tags(Team team, std::string name, std::vector<std::string> tags,
                                               InUse in_use);
    Result<std::vector<TagRecord>> tags(const Team& team, const std::string& ref) const;  // newest first

    // Warns of snapshots that will be removed, and removes those whose time is over and that nobody uses.
    boost::asio::awaitable<void> apply_retention(Retention retention, std::int64_t now, InUse in_use);

  private:
    struct Found {
        const TemplateRecord* row;
        TemplateName name;
    };
    // Nothing: no template of a team.
    [[nodiscard]] Result<std::optional<Found>> find_own(const Team& team, std::string_view ref) const;
    [[nodiscard]] Result<Found> require_own(const Team& team, std::string_view ref) const;
    [[nodiscard]] const TagRecord* tag_of(const std::string& template_id, const std::string& tag) const;
    [[nodiscard]] bool has_tags(const std::string& build_id) const;
    [[nodiscard]] bool has_builds(const std::string& template_id) const;
    boost::asio::awaitable<Result<StartPoint>> find_on_node(std::string ref, Wanted wanted);
    // Removes from the change's rows what nothing leads to any more, stores it, and then removes the files.
    boost::asio::awaitable<Status> drop(std::vector<std::string> build_ids, Change change);
    [[nodiscard]] Snapshot snapshot_of(const std::string& slug, const TagRecord& tag) const;

    boost::asio::any_io_executor executor_;
    boost::asio::thread_pool& pool_;
    Store& store_;
    Node& node_;
    std::vector<TemplateInfo> on_node_;  // as the node last said
    std::int64_t on_node_until_ms_ = 0;
    std::unordered_map<std::string, TemplateRecord> rows_;
    std::unordered_map<std::string, BuildRecord> builds_;
    std::map<std::pair<std::string, std::string>, TagRecord> tags_;  // by template and tag
    using Names = std::set<std::pair<std::string, std::string>>;     // team and name
    std::shared_ptr<Names> drafts_ = std::make_shared<Names>();      // drafts may outlive this
};

}  // namespace gb
