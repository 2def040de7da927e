// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite_store.h"

#include <future>

#include <boost/json.hpp>
#include <fcntl.h>
#include <fmt/format.h>

#include "base/file.h"

namespace gb {
namespace json = boost::json;

namespace sqlite {

std::string to_json(const std::map<std::string, std::string>& map) {
    json::object object;
    for (const auto& [key, value] : map) object[key] = value;
    return json::serialize(object);
}

std::string to_json(const std::vector<std::string>& list) {
    return json::serialize(json::array(list.begin(), list.end()));
}

std::string to_json(const std::vector<HeaderRow>& rows) {
    json::array list;
    for (const HeaderRow& row : rows) list.push_back(json::array{row.host, row.name, row.value});
    return json::serialize(list);
}

std::map<std::string, std::string> map_of(const std::string& text) {
    std::map<std::string, std::string> out;
    boost::system::error_code ec;
    json::value value = json::parse(text, ec);
    if (ec || !value.is_object()) return out;
    for (const auto& item : value.get_object())
        if (item.value().is_string()) out.emplace(item.key(), item.value().get_string());
    return out;
}

std::vector<std::string> list_of(const std::string& text) {
    std::vector<std::string> out;
    boost::system::error_code ec;
    json::value value = json::parse(text, ec);
    if (ec || !value.is_array()) return out;
    for (const json::value& item : value.get_array())
        if (item.is_string()) out.emplace_back(item.get_string());
    return out;
}

std::vector<HeaderRow> headers_of(const std::string& text) {
    std::vector<HeaderRow> out;
    boost::system::error_code ec;
    json::value value = json::parse(text, ec);
    if (ec || !value.is_array()) return out;
    for (const json::value& item : value.get_array()) {
        if (!item.is_array() || item.get_array().size() != 3) continue;
        const json::array& row = item.get_array();
        if (row[0].is_string() && row[1].is_string() && row[2].is_string())
            out.push_back({std::string(row[0].get_string()), std::string(row[1].get_string()),
                           std::string(row[2].get_string())});
    }
    return out;
}

}  // namespace sqlite

Status Store::commit(Change change) {
    std::promise<Status> promise;
    submit(std::move(change), [&](Status status) { promise.set_value(std::move(status)); });
    return promise.get_future().get();
}

Status SqliteStore::forget_before(std::int64_t time_ms) {
    return db_.write("forget old records", [=](SqliteConnection& db) {
        for (const char* table : {"event", "metric", "log"})
            db.exec(fmt::format("DELETE FROM {} WHERE time_ms < {}", table, time_ms));
    });
}

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path) {
    // SQLite would create the file with the umask's mode; keys' hashes and metadata are nobody else's
    // business.
    GB_TRY(open_file(path, O_RDWR | O_CREAT, 0600));
    try {
        auto store = std::make_unique<SqliteStore>(path);
        GB_TRY(store->migrate());
        return store;
    } catch (const SQLite::Exception& e) {
        return fail(ErrorCode::internal, fmt::format("open {}: {}", path, e.what()));
    }
}

}  // namespace gb
