// SPDX-License-Identifier: Apache-2.0
// POST /files/compose: joins files that were uploaded in parts, and removes the parts.
#include <sys/stat.h>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/offload.h"
#include "guest/agent/files_http.h"
#include "guest/agent/json_fields.h"
#include "guest/agent/upload_file.h"
#include "guest/agent/write_info.h"

namespace gb::agent {
namespace {

struct Composition {
    std::vector<std::string> sources;
    std::string destination;
    User owner;
};

Status check_source(const std::string& path) {
    struct stat st{};
    if (::stat(path.c_str(), &st) != 0)
        return fail(ErrorCode::not_found, fmt::format("source file not found: {}", path));
    if (!S_ISREG(st.st_mode))
        return fail(ErrorCode::invalid_argument, fmt::format("source path is not a regular file: {}", path));
    return {};
}

Status run(const Composition& composition) {
    for (const std::string& source : composition.sources) GB_TRY(check_source(source));
    GB_TRY_ASSIGN(UploadFile file, UploadFile::create(composition.destination, composition.owner));
    for (const std::string& source : composition.sources) GB_TRY(file.append_file(source));
    GB_TRY(file.commit({}));
    for (const std::string& source : composition.sources) ::unlink(source.c_str());
    return {};
}

Result<Composition> read_request(const Exchange& exchange, std::string_view body, const Settings& settings,
                                 UserCache& users) {
    GB_TRY_ASSIGN(const JsonFields fields, JsonFields::parse(body));
    GB_TRY_ASSIGN(const auto sources, fields.strings("source_paths"));
    GB_TRY_ASSIGN(const auto destination, fields.text("destination"));
    GB_TRY_ASSIGN(const auto username, fields.text("username"));
    if (!sources || sources->empty())
        return fail(ErrorCode::invalid_argument, "source_paths: must not be empty");
    if (!destination || destination->empty())
        return fail(ErrorCode::invalid_argument, "destination: required");
    GB_TRY_ASSIGN(const Caller caller, identify(exchange.head, username.value_or(""), settings, users));
    Composition composition{{}, {}, *caller.user};
    GB_TRY_ASSIGN(composition.destination, resolve_file_path(*destination, settings, *caller.user));
    for (const std::string& source : *sources) {
        GB_TRY_ASSIGN(std::string path, resolve_file_path(source, settings, *caller.user));
        if (path == composition.destination)
            return fail(ErrorCode::invalid_argument,
                        fmt::format("source_paths: '{}' is the destination too", source));
        composition.sources.push_back(std::move(path));
    }
    return composition;
}

}  // namespace

awaitable<void> FilesHttp::compose(Exchange& exchange) {
    const auto body = co_await exchange.body.read_all(std::size_t{4} << 20);
    Result<Composition> request =
        body ? read_request(exchange, *body, settings_, users_) : std::unexpected(body.error());
    if (!request) {
        co_await reply_error(exchange, request.error());
        co_return;
    }
    auto work = [composition = *request] { return run(composition); };
    const Status done = co_await offload(pool_, std::move(work));
    if (!done) {
        co_await reply_error(exchange, done.error());
        co_return;
    }
    log_written(request->destination, request->owner.name);
    co_await reply_json(exchange, 200, write_info(request->destination, {}));
}

}  // namespace gb::agent
