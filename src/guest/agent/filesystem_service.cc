// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/filesystem_service.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/offload.h"
#include "guest/agent/entry_info.h"
#include "guest/agent/folders.h"
#include "guest/agent/paths.h"

namespace gb::agent {

using namespace filesystem;

awaitable<bool> FilesystemService::serve(Exchange& exchange, std::string_view method) {
    if (method == "Stat") {
        auto handle = [this, &exchange](const StatRequest& r) { return stat(exchange, r); };
        co_await serve_unary<StatRequest>(exchange, handle);
    } else if (method == "MakeDir") {
        auto handle = [this, &exchange](const MakeDirRequest& r) { return make_dir(exchange, r); };
        co_await serve_unary<MakeDirRequest>(exchange, handle);
    } else if (method == "Move") {
        auto handle = [this, &exchange](const MoveRequest& r) { return move(exchange, r); };
        co_await serve_unary<MoveRequest>(exchange, handle);
    } else if (method == "ListDir") {
        auto handle = [this, &exchange](const ListDirRequest& r) { return list_dir(exchange, r); };
        co_await serve_unary<ListDirRequest>(exchange, handle);
    } else if (method == "Remove") {
        auto handle = [this, &exchange](const RemoveRequest& r) { return remove(exchange, r); };
        co_await serve_unary<RemoveRequest>(exchange, handle);
    } else {
        co_return false;
    }
    co_return true;
}

Result<FilesystemService::Place> FilesystemService::locate(const Exchange& exchange, std::string_view path) {
    GB_TRY_ASSIGN(Caller caller, identify(exchange.head, {}, settings_, users_));
    GB_TRY_ASSIGN(std::string resolved, resolve_file_path(path, settings_, *caller.user));
    return Place{std::move(caller), std::move(resolved)};
}

awaitable<Result<StatResponse>> FilesystemService::stat(const Exchange& exchange,
                                                        const StatRequest& request) {
    GB_CO_TRY_ASSIGN(const Place place, locate(exchange, request.path()));
    GB_CO_TRY_ASSIGN(EntryInfo entry, entry_info(place.path, *place.caller.users));
    StatResponse response;
    *response.mutable_entry() = std::move(entry);
    co_return response;
}

awaitable<Result<MakeDirResponse>> FilesystemService::make_dir(const Exchange& exchange,
                                                               const MakeDirRequest& request) {
    GB_CO_TRY_ASSIGN(const Place place, locate(exchange, request.path()));
    GB_CO_TRY_ASSIGN(const bool made, make_folders(place.path, *place.caller.user));
    if (!made)
        co_return fail(ErrorCode::already_exists, fmt::format("directory already exists: {}", place.path));
    GB_CO_TRY_ASSIGN(EntryInfo entry, entry_info(place.path, *place.caller.users));
    MakeDirResponse response;
    *response.mutable_entry() = std::move(entry);
    co_return response;
}

awaitable<Result<MoveResponse>> FilesystemService::move(const Exchange& exchange,
                                                        const MoveRequest& request) {
    GB_CO_TRY_ASSIGN(const Place from, locate(exchange, request.source()));
    GB_CO_TRY_ASSIGN(const Place to, locate(exchange, request.destination()));
    auto work = [source = from.path, destination = to.path, owner = *to.caller.user] {
        return move_entry(source, destination, owner);
    };
    GB_CO_TRY(co_await offload(pool_, std::move(work)));
    log_.add(TelemetryLog::Level::info, "filesystem", fmt::format("moved: {} to {}", from.path, to.path),
             {{"path", from.path}, {"destination", to.path}, {"user", from.caller.user->name}});
    GB_CO_TRY_ASSIGN(EntryInfo entry, entry_info(to.path, *to.caller.users));
    MoveResponse response;
    *response.mutable_entry() = std::move(entry);
    co_return response;
}

awaitable<Result<ListDirResponse>> FilesystemService::list_dir(const Exchange& exchange,
                                                               const ListDirRequest& request) {
    GB_CO_TRY_ASSIGN(const Place place, locate(exchange, request.path()));
    auto work = [path = place.path, depth = request.depth(), users = place.caller.users] {
        return list_folder(path, depth, *users);
    };
    GB_CO_TRY_ASSIGN(std::vector<EntryInfo> entries, co_await offload(pool_, std::move(work)));
    ListDirResponse response;
    for (EntryInfo& entry : entries) *response.add_entries() = std::move(entry);
    co_return response;
}

awaitable<Result<RemoveResponse>> FilesystemService::remove(const Exchange& exchange,
                                                            const RemoveRequest& request) {
    GB_CO_TRY_ASSIGN(const Place place, locate(exchange, request.path()));
    if (place.path == "/")
        co_return fail(ErrorCode::invalid_argument, "the root directory cannot be removed");
    auto work = [path = place.path] { return remove_tree(path); };
    GB_CO_TRY(co_await offload(pool_, std::move(work)));
    log_.add(TelemetryLog::Level::info, "filesystem", fmt::format("removed: {}", place.path),
             {{"path", place.path}, {"user", place.caller.user->name}});
    co_return RemoveResponse();
}

}  // namespace gb::agent
