// SPDX-License-Identifier: Apache-2.0
#include "cli/api_client.h"

#include <cstdlib>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/json.hpp>
#include <boost/url/parse.hpp>
#include <fmt/format.h>

#include "base/error_table.h"
#include "base/file.h"
#include "cli/paths.h"
#include "http/client.h"

namespace gb::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
// The server works as long as something moves; it is what tells slow from broken.
constexpr std::chrono::minutes kLimit{30};

using Response = http::ClientConnection::Response;

asio::awaitable<Result<Response>> exchange(asio::ip::tcp::endpoint where, http::RequestHead head,
                                           std::string body) {
    GB_CO_TRY_ASSIGN(auto connection,
                     co_await http::ClientConnection::connect(where, std::chrono::seconds(5)));
    GB_CO_TRY_ASSIGN(auto response,
                     co_await connection.request(std::move(head), body, std::size_t{256} << 20));
    if (response.head.status / 100 == 2) co_return std::move(response);
    co_return fail(code_from_http(response.head.status),
                   message_of_answer(response.head.status, response.body));
}

http::RequestHead head_of(const ServerAddress& server, const ServerPlace& place, const std::string& method,
                          const std::string& path) {
    http::RequestHead head{method, path, {{"Host", place.host}}};
    if (server.admin_token.empty())
        head.headers.add("X-API-Key", server.key);
    else
        head.headers.add("X-Admin-Token", server.admin_token);
    return head;
}

asio::awaitable<Status> read_lines(asio::ip::tcp::endpoint where, http::RequestHead head,
                                   const std::function<void(std::string_view)>& on_line) {
    constexpr std::size_t kLongestLine = std::size_t{1} << 20;
    GB_CO_TRY_ASSIGN(auto connection,
                     co_await http::ClientConnection::connect(where, std::chrono::seconds(5)));
    GB_CO_TRY(co_await connection.start(std::move(head), 0));
    GB_CO_TRY_ASSIGN(const http::ResponseHead answer, co_await connection.read_head());
    if (answer.status / 100 != 2) {
        GB_CO_TRY_ASSIGN(const std::string body, co_await connection.read_all(kLongestLine));
        co_return fail(code_from_http(answer.status), message_of_answer(answer.status, body));
    }
    std::string pending;
    for (;;) {
        GB_CO_TRY_ASSIGN(const std::string_view piece, co_await connection.next());
        if (piece.empty()) co_return Status{};
        pending += piece;
        std::size_t begin = 0;
        for (std::size_t end = 0; (end = pending.find('\n', begin)) != std::string::npos; begin = end + 1)
            on_line(std::string_view(pending).substr(begin, end - begin));
        pending.erase(0, begin);
        if (pending.size() > kLongestLine)
            co_return fail(ErrorCode::too_large, "the server sends a line without an end");
    }
}

Result<std::string> running_url(const NodeOptions& options) {
    auto text = read_file(server_file(options));
    boost::system::error_code ec;
    json::value value = text ? json::parse(*text, ec) : json::value();
    const json::value* found = !ec && value.is_object() ? value.get_object().if_contains("url") : nullptr;
    if (found == nullptr || !found->is_string())
        return fail(
            ErrorCode::not_found,
            fmt::format("no server runs with the data folder {}: start one with `glovebox serve`, or name "
                        "another folder with --data-dir",
                        options.data_dir.string()));
    return std::string(found->get_string());
}

Result<std::string> first_line(const std::filesystem::path& file, std::string_view what) {
    auto stored = read_file(file);
    if (!stored) return std::unexpected(stored.error().with(what));
    return stored->substr(0, stored->find('\n'));
}

}  // namespace

Result<ServerAddress> find_server(const NodeOptions& options, bool data_dir_given) {
    const char* url = std::getenv("E2B_API_URL");
    const char* key = std::getenv("E2B_API_KEY");
    if (!data_dir_given && url != nullptr && key != nullptr) return ServerAddress{url, key};
    return find_local_server(options);
}

Result<ServerAddress> find_local_server(const NodeOptions& options) {
    ServerAddress out;
    GB_TRY_ASSIGN(out.url, running_url(options));
    GB_TRY_ASSIGN(out.key, first_line(key_file(options), "the default API key"));
    return out;
}

Result<ServerAddress> find_operator_server(const NodeOptions& options) {
    ServerAddress out;
    GB_TRY_ASSIGN(out.url, running_url(options));
    GB_TRY_ASSIGN(out.admin_token, first_line(admin_token_file(options), "the operator's token"));
    return out;
}

Result<ServerPlace> resolve_server(const std::string& text) {
    auto url = boost::urls::parse_uri(text);
    if (!url || url->scheme() != "http")
        return fail(ErrorCode::invalid_argument, fmt::format("'{}' is not an http:// URL", text));
    asio::io_context io(1);
    asio::ip::tcp::resolver resolver(io);
    boost::system::error_code ec;
    const std::string port = url->port().empty() ? "80" : std::string(url->port().data(), url->port().size());
    const std::string name(url->host_address());
    auto places = resolver.resolve(name, port, ec);
    if (ec || places.empty())
        return fail(ErrorCode::unavailable, fmt::format("{} cannot be resolved: {}", text, ec.message()));
    ServerPlace out{places.begin()->endpoint(), std::string(url->encoded_host_and_port()), ""};
    boost::system::error_code no_address;
    asio::ip::make_address(name, no_address);
    // Headers name a sandbox only where the host is no name of another one.
    out.sandbox_host = no_address && name != "localhost" ? "sandbox." + out.host : out.host;
    return out;
}

std::string page_after(const std::string& path, std::string_view token) {
    return path + (path.find('?') == std::string::npos ? "?nextToken=" : "&nextToken=") + http::percent_encode(token);
}

std::string message_of_answer(int status, std::string_view body) {
    boost::system::error_code ec;
    const json::value value = json::parse(body, ec);
    if (!ec && value.is_object())
        if (const json::value* text = value.get_object().if_contains("message");
            text != nullptr && text->is_string())
            return std::string(text->get_string());
    return fmt::format("the server answered {}", status);
}

namespace {

Result<Response> call_once(const ServerAddress& server, const std::string& method, const std::string& path,
                           const std::string& body) {
    GB_TRY_ASSIGN(ServerPlace place, resolve_server(server.url));
    asio::io_context io(1);
    http::RequestHead head = head_of(server, place, method, path);
    if (!body.empty()) head.headers.add("Content-Type", "application/json");
    std::optional<Result<Response>> result;
    asio::co_spawn(io, exchange(place.endpoint, std::move(head), body),
                   [&](const std::exception_ptr& failure, Result<Response> value) {
                       if (failure) std::rethrow_exception(failure);
                       result = std::move(value);
                   });
    io.run_for(kLimit);
    if (!result) return fail(ErrorCode::deadline_exceeded, fmt::format("no answer from {}", server.url));
    if (!*result && result->error().code == ErrorCode::unavailable &&
        result->error().message.starts_with("connect"))
        return std::unexpected(result->error().with("is the server running? start it with `glovebox serve`"));
    return *std::move(result);
}

}  // namespace

Result<std::string> call_api_text(const ServerAddress& server, const std::string& method,
                                  const std::string& path, const std::string& body) {
    GB_TRY_ASSIGN(Response response, call_once(server, method, path, body));
    return std::move(response.body);
}

Result<json::value> call_api(const ServerAddress& server, const std::string& method, const std::string& path,
                             const std::string& body) {
    json::value all;
    for (std::string page = path;;) {
        GB_TRY_ASSIGN(Response response, call_once(server, method, page, body));
        if (response.body.empty()) return all;
        boost::system::error_code ec;
        json::value value = json::parse(response.body, ec);
        if (ec) return fail(ErrorCode::internal, "the server's answer is not JSON");
        if (all.is_null())
            all = std::move(value);
        else if (all.is_array() && value.is_array())
            for (json::value& item : value.get_array()) all.get_array().push_back(std::move(item));
        const std::string_view token = response.head.headers.get("X-Next-Token");
        if (method != "GET" || token.empty() || !all.is_array()) return all;
        page = page_after(path, token);
    }
}

Status stream_api(const ServerAddress& server, const std::string& path,
                  const std::function<void(std::string_view line)>& on_line) {
    GB_TRY_ASSIGN(const ServerPlace place, resolve_server(server.url));
    asio::io_context io(1);
    Status result = fail(ErrorCode::internal, "not asked");
    asio::co_spawn(io, read_lines(place.endpoint, head_of(server, place, "GET", path), on_line),
                   [&](const std::exception_ptr& failure, Status status) {
                       if (failure) std::rethrow_exception(failure);
                       result = std::move(status);
                   });
    io.run();
    return result;
}

}  // namespace gb::cli
