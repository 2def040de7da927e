// SPDX-License-Identifier: Apache-2.0
#include "control/templates.h"

#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/offload.h"
#include "control/commit.h"
#include "control/events.h"

namespace gb {

namespace asio = boost::asio;
using asio::awaitable;

namespace {

std::unexpected<Error> no_such_template(std::string_view ref) {
    return fail(ErrorCode::not_found, fmt::format("template '{}' not found", ref));
}

std::unexpected<Error> no_such_tag(const TemplateName& name) {
    return fail(ErrorCode::not_found, fmt::format("template '{}' has no tag '{}'", name.name, name.tag));
}

const std::string& tag_or_default(const TemplateName& name) {
    static const std::string standard(kDefaultTag);
    return name.tag.empty() ? standard : name.tag;
}

Result<TemplateInfo> find_template(const std::vector<TemplateInfo>& templates, std::string_view reference) {
    auto name = parse_template_name(reference);
    if (!name || !name->space.empty()) return no_such_template(reference);
    for (const TemplateInfo& info : templates) {
        if (info.id != name->name && info.name != name->name) continue;
        if (tag_or_default(*name) != kDefaultTag) return no_such_tag(*name);
        return info;
    }
    return no_such_template(reference);
}

}  // namespace

Status Templates::start() {
    GB_TRY_ASSIGN(TemplateRows rows, store_.templates());
    GB_TRY_ASSIGN(const std::vector<std::string> held, node_.snapshots());
    for (TemplateRecord& row : rows.templates) rows_.emplace(row.id, std::move(row));
    for (BuildRecord& build : rows.builds) builds_.emplace(build.id, std::move(build));
    for (TagRecord& tag : rows.tags) tags_.insert_or_assign({tag.template_id, tag.tag}, tag);
    for (const std::string& id : held)
        if (!builds_.contains(id)) asio::co_spawn(executor_, node_.remove_snapshot(id), asio::detached);
    for (const auto& [id, build] : builds_)
        if (std::ranges::find(held, id) == held.end())
            log::warn("the files of a snapshot are gone", {{"build", id}, {"template", build.template_id}});
    return {};
}

Result<std::optional<Templates::Found>> Templates::find_own(const Team& team, std::string_view ref) const {
    auto name = parse_template_name(ref);
    if (!name) return std::optional<Found>();
    const TemplateRecord* others = nullptr;
    for (const auto& [id, row] : rows_) {
        const bool by_id = name->space.empty() && id == name->name;
        const bool by_name =
            !row.name.empty() && row.name == name->name && (name->space.empty() || name->space == team.slug);
        if (row.team_id == team.id && (by_id || by_name)) return Found{&row, *name};
        if (by_id) others = &row;
    }
    if (others != nullptr)
        return fail(ErrorCode::permission_denied, fmt::format("template '{}' is not your team's", ref));
    return std::optional<Found>();
}

Result<Templates::Found> Templates::require_own(const Team& team, std::string_view ref) const {
    GB_TRY_ASSIGN(auto found, find_own(team, ref));
    if (!found) return no_such_template(ref);
    return *found;
}

const TagRecord* Templates::tag_of(const std::string& template_id, const std::string& tag) const {
    auto found = tags_.find({template_id, tag});
    return found == tags_.end() ? nullptr : &found->second;
}

bool Templates::has_tags(const std::string& build_id) const {
    return std::ranges::any_of(tags_, [&](const auto& item) { return item.second.build_id == build_id; });
}

bool Templates::has_builds(const std::string& template_id) const {
    return std::ranges::any_of(builds_,
                               [&](const auto& item) { return item.second.template_id == template_id; });
}

awaitable<Result<StartPoint>> Templates::find(Team team, std::string ref, Wanted wanted) {
    GB_CO_TRY_ASSIGN(const std::optional<Found> own, find_own(team, ref));
    if (!own) co_return co_await find_on_node(std::move(ref), wanted);
    const TagRecord* tag = tag_of(own->row->id, tag_or_default(own->name));
    if (tag == nullptr) co_return no_such_tag({own->name.space, own->name.name, tag_or_default(own->name)});
    const BuildRecord& build = builds_.at(tag->build_id);
    co_return StartPoint{{own->row->id, own->row->name, build.id, build.cpu_count, build.memory_mib,
                          build.disk_mib, build.created_ms},
                         build.id};
}

// The node looks at its disk; what it said a moment ago is good enough for what was found then.
awaitable<Result<StartPoint>> Templates::find_on_node(std::string ref, Wanted wanted) {
    constexpr std::int64_t kMomentMs = 250;
    if (monotonic_ms() < on_node_until_ms_)
        if (auto found = find_template(on_node_, ref)) co_return StartPoint{*std::move(found), {}};
    GB_CO_TRY_ASSIGN(on_node_, co_await offload(pool_, [this] { return node_.templates(); }));
    on_node_until_ms_ = monotonic_ms() + kMomentMs;
    auto info = find_template(on_node_, ref);
    if (info) co_return StartPoint{*std::move(info), {}};
    const auto name = parse_template_name(ref);
    const bool may_become = name && name->space.empty() && tag_or_default(*name) == kDefaultTag;
    if (wanted == Wanted::to_know || !may_become) co_return std::unexpected(info.error());
    co_return std::unexpected(
        co_await offload(pool_, [this, &name] { return node_.absent_template(name->name); }));
}

Result<Templates::Draft> Templates::draft(const Team& team, const SandboxRecord& of,
                                          const std::string& name) {
    Draft out;
    out.row = {template_id(), team.id, {}, now_ms()};
    out.tag.tag = kDefaultTag;
    if (!name.empty()) {
        GB_TRY_ASSIGN(const TemplateName wanted, parse_new_template_name(name, team.slug));
        GB_TRY_ASSIGN(const std::optional<Found> known, find_own(team, wanted.name));
        if (known)
            out.row = *known->row;
        else
            out.row.name = wanted.name;
        out.tag.tag = wanted.tag;
        const std::pair key(team.id, out.row.name);
        if (!drafts_->insert(key).second)
            return fail(ErrorCode::failed_precondition,
                        fmt::format("a snapshot of the name '{}' is being taken", wanted.name));
        out.name_kept =
            std::shared_ptr<void>(nullptr, [drafts = drafts_, key](void*) { drafts->erase(key); });
    }
    out.build = {random_uuid(), out.row.id, of.id, of.cpu_count, of.memory_mib, of.disk_mib, now_ms()};
    out.tag.template_id = out.row.id;
    out.tag.build_id = out.build.id;
    return out;
}

awaitable<Result<Snapshot>> Templates::publish(Team team, Draft draft, Event event) {
    draft.tag.created_ms = now_ms();
    Change change;
    change.put_templates.push_back(draft.row);
    change.put_builds.push_back(draft.build);
    change.put_tags.push_back(draft.tag);
    tell(change, std::move(event));
    if (Status stored = co_await commit(store_, std::move(change)); !stored) {
        (void)co_await node_.remove_snapshot(draft.build.id);
        co_return std::unexpected(stored.error());
    }
    const TagRecord* before = tag_of(draft.row.id, draft.tag.tag);
    const std::string replaced = before == nullptr ? "" : before->build_id;
    rows_.insert_or_assign(draft.row.id, draft.row);
    builds_.insert_or_assign(draft.build.id, draft.build);
    tags_.insert_or_assign({draft.row.id, draft.tag.tag}, draft.tag);
    Snapshot out = snapshot_of(team.slug, draft.tag);
    if (!replaced.empty() && !has_tags(replaced)) {
        if (Status dropped = co_await drop({replaced}, {}); !dropped)
            log::warn("a replaced snapshot is left",
                      {{"build", replaced}, {"error", dropped.error().message}});
    }
    co_return out;
}

Snapshot Templates::snapshot_of(const std::string& slug, const TagRecord& tag) const {
    const TemplateRecord& row = rows_.at(tag.template_id);
    Snapshot out{.build = builds_.at(tag.build_id), .tag = tag.tag};
    if (!row.name.empty()) out.names.push_back(slug + "/" + row.name);
    out.id = fmt::format("{}:{}", row.name.empty() ? row.id : out.names.front(), tag.tag);
    return out;
}

Result<SnapshotPage> Templates::snapshots(const Team& team, const SnapshotQuery& query) const {
    std::optional<TemplateName> name;
    SnapshotPage page;
    if (!query.name.empty()) {
        auto parsed = parse_template_name(query.name);
        if (!parsed || (!parsed->space.empty() && parsed->space != team.slug)) return page;
        name = *std::move(parsed);
    }
    std::vector<const TagRecord*> found;
    for (const auto& [key, tag] : tags_) {
        const TemplateRecord& row = rows_.at(tag.template_id);
        if (row.team_id != team.id) continue;
        if (!query.sandbox_id.empty() && builds_.at(tag.build_id).sandbox_id != query.sandbox_id) continue;
        if (name && name->name != (row.name.empty() ? row.id : row.name)) continue;
        if (name && !name->tag.empty() && name->tag != tag.tag) continue;
        found.push_back(&tag);
    }
    // A place in the order that stays when others come and go.
    const auto place = [](const TagRecord& tag) {
        return fmt::format("{:020}__{}__{}", tag.created_ms, tag.template_id, tag.tag);
    };
    std::ranges::sort(found, std::ranges::greater(), [&](const TagRecord* tag) { return place(*tag); });
    if (!query.next_token.empty()) {
        auto after = base64url_decode(query.next_token);
        if (!after || after->size() < 22 || after->substr(20, 2) != "__")
            return fail(ErrorCode::invalid_argument, "Invalid next token");
        std::erase_if(found, [&](const TagRecord* tag) { return place(*tag) >= *after; });
    }
    if (found.size() > query.limit) {
        found.resize(query.limit);
        page.next_token = base64url_encode(place(*found.back()));
    }
    for (const TagRecord* tag : found) page.items.push_back(snapshot_of(team.slug, *tag));
    return page;
}

awaitable<Status> Templates::drop(std::vector<std::string> build_ids, Change change) {
    std::set<std::string> touched;
    for (const std::string& id : build_ids)
        if (auto found = builds_.find(id); found != builds_.end()) touched.insert(found->second.template_id);
    // In memory at once: nobody starts from it any more, whatever the store takes.
    for (const std::string& id : build_ids) {
        builds_.erase(id);
        std::erase_if(tags_, [&](const auto& item) { return item.second.build_id == id; });
        change.remove_builds.push_back(id);
    }
    for (const std::string& id : touched) {
        // One that is being taken needs its row.
        auto row = rows_.find(id);
        if (row == rows_.end() || has_builds(id) ||
            drafts_->contains({row->second.team_id, row->second.name}))
            continue;
        rows_.erase(row);
        change.remove_templates.push_back(id);
    }
    GB_CO_TRY(co_await commit(store_, std::move(change)));
    for (const std::string& id : build_ids) GB_CO_TRY(co_await node_.remove_snapshot(id));
    co_return Status{};
}

awaitable<Status> Templates::remove(Team team, std::string ref, InUse in_use) {
    GB_CO_TRY_ASSIGN(const std::optional<Found> own, find_own(team, ref));
    if (!own) {
        GB_CO_TRY(co_await find_on_node(ref, Wanted::to_know));
        co_return fail(
            ErrorCode::permission_denied,
            fmt::format("template '{}' belongs to this server; only its operator can remove it", ref));
    }
    const Found& found = *own;
    const std::string id = found.row->id;
    std::vector<std::string> going;
    Change change;
    if (found.name.tag.empty()) {
        for (const auto& [build_id, build] : builds_)
            if (build.template_id == id) going.push_back(build_id);
    } else {
        const TagRecord* tag = tag_of(id, found.name.tag);
        if (tag == nullptr) co_return no_such_tag(found.name);
        const bool last = std::ranges::count_if(tags_, [&](const auto& item) {
                              return item.second.build_id == tag->build_id;
                          }) == 1;
        if (last) {
            going.push_back(tag->build_id);
        } else {
            change.remove_tags.emplace_back(id, tag->tag);
            tags_.erase({id, found.name.tag});
        }
    }
    for (const std::string& build_id : going)
        if (in_use(build_id))
            co_return fail(
                ErrorCode::failed_precondition,
                fmt::format("template '{}' is used by a running or paused sandbox; kill it first", ref));
    co_return co_await drop(std::move(going), std::move(change));
}

awaitable<Result<Templates::Assigned>> Templates::assign_tags(Team team, std::string target,
                                                              std::vector<std::string> tags) {
    if (tags.empty()) co_return fail(ErrorCode::invalid_argument, "validation error: field 'tags' is empty");
    for (const std::string& tag : tags) GB_CO_TRY(check_tag(tag));
    GB_CO_TRY(parse_template_name(target));
    GB_CO_TRY_ASSIGN(const Found found, require_own(team, target));
    const TagRecord* from = tag_of(found.row->id, tag_or_default(found.name));
    if (from == nullptr) co_return no_such_tag({{}, found.name.name, tag_or_default(found.name)});
    Change change;
    for (const std::string& tag : tags)
        change.put_tags.push_back({found.row->id, tag, from->build_id, now_ms()});
    const std::vector<TagRecord> given = change.put_tags;
    const std::string build_id = from->build_id;
    GB_CO_TRY(co_await commit(store_, std::move(change)));
    std::vector<std::string> replaced;
    for (const TagRecord& tag : given) {
        if (!rows_.contains(tag.template_id) || !builds_.contains(build_id))
            co_return no_such_template(target);
        TagRecord& place = tags_[{tag.template_id, tag.tag}];
        if (!place.build_id.empty() && place.build_id != build_id) replaced.push_back(place.build_id);
        place = tag;
    }
    std::erase_if(replaced, [&](const std::string& id) { return has_tags(id); });
    if (Status dropped = co_await drop(replaced, {}); !dropped)
        log::warn("a replaced snapshot is left", {{"error", dropped.error().message}});
    co_return Assigned{build_id, std::move(tags)};
}

awaitable<Status> Templates::remove_tags(Team team, std::string name, std::vector<std::string> tags,
                                         InUse in_use) {
    GB_CO_TRY(parse_template_name(name));
    GB_CO_TRY_ASSIGN(const Found found, require_own(team, name));
    const std::string id = found.row->id;
    for (const std::string& tag : tags) {
        GB_CO_TRY(check_tag(tag));
        if (tag == kDefaultTag)
            co_return fail(ErrorCode::invalid_argument, "the tag 'default' cannot be removed");
        if (tag_of(id, tag) == nullptr) co_return no_such_tag({{}, found.name.name, tag});
    }
    for (const std::string& tag : tags)
        GB_CO_TRY(co_await remove(team, fmt::format("{}:{}", id, tag), in_use));
    co_return Status{};
}

Result<std::vector<TagRecord>> Templates::tags(const Team& team, const std::string& ref) const {
    GB_TRY_ASSIGN(const Found found, require_own(team, ref));
    std::vector<TagRecord> out;
    for (const auto& [key, tag] : tags_)
        if (tag.template_id == found.row->id) out.push_back(tag);
    std::ranges::sort(out, std::ranges::greater(), &TagRecord::created_ms);
    return out;
}

}  // namespace gb
