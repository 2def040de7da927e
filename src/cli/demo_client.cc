// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_client.h"

#include <boost/json.hpp>
#include <fmt/format.h>

#include "cli/table.h"
#include "http/message.h"

namespace gb::cli {

namespace asio = boost::asio;
namespace json = boost::json;
using asio::awaitable;

namespace {

constexpr int kLifetime_s = 3600;  // it is destroyed long before
constexpr std::chrono::minutes kRunLimit{30};
constexpr std::size_t kMostOutput = std::size_t{1} << 20;

void append(std::string& to, std::string_view piece) {
    to += piece.substr(0, kMostOutput - std::min(kMostOutput, to.size()));
}

}  // namespace

awaitable<Result<JobSandbox>> DemoClient::create(bool internet_access, std::string purpose) {
    const json::object body{{"templateID", "base"},
                            {"timeout", kLifetime_s},
                            {"allow_internet_access", internet_access},
                            {"metadata", json::object{{"demo", purpose}}}};
    GB_CO_TRY_ASSIGN(const json::value made,
                     co_await client_.api("POST", "/v2/sandboxes", json::serialize(body)));
    const std::string token = field_text(made, "envdAccessToken");
    co_return JobSandbox{field_text(made, "sandboxID"), token == "-" ? "" : token, "user"};
}

awaitable<Result<GuestOutput>> DemoClient::run(JobSandbox sandbox, std::string command,
                                               std::map<std::string, std::string> env) {
    json::object variables;
    for (const auto& [name, value] : env) variables[name] = value;
    const std::string message = json::serialize(
        json::object{{"process", json::object{{"cmd", "/bin/bash"},
                                              {"args", json::array{"-l", "-c", std::move(command)}},
                                              {"envs", std::move(variables)}}},
                     {"stdin", false}});
    GuestOutput output;
    const auto take = [&](const AgentEvent& event) -> Status {
        append(output.out, event.out);
        append(output.err, event.err);
        return {};
    };
    GB_CO_TRY_ASSIGN(output.exit_code, co_await client_.run(std::move(sandbox), message, kRunLimit, take));
    co_return output;
}

awaitable<Result<json::value>> DemoClient::evidence(JobSandbox sandbox, std::string kind) {
    co_return co_await client_.api(
        "GET", fmt::format("/glovebox/sandboxes/{}/{}", http::percent_encode(sandbox.id), kind));
}

awaitable<Result<bool>> DemoClient::destroy(JobSandbox sandbox) {
    const std::string path = "/sandboxes/" + http::percent_encode(sandbox.id);
    GB_CO_TRY(co_await client_.api("DELETE", path));
    auto info = co_await client_.api("GET", path);
    if (!info && info.error().code != ErrorCode::not_found) co_return std::unexpected(info.error());
    co_return !info;
}

}  // namespace gb::cli
