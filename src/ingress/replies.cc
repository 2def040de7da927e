// SPDX-License-Identifier: Apache-2.0
#include "ingress/replies.h"

#include <fmt/format.h>

#include "base/error_body.h"
#include "base/error_table.h"
#include "base/log.h"

namespace gb::ingress {
namespace {

constexpr const char* kJson = "application/json; charset=utf-8";

std::string message_json(const Route& route, std::string_view message, int code) {
    return fmt::format(R"({{"sandboxId":{},"message":{},"code":{}}})", log::json_quote(route.sandbox_id),
                       log::json_quote(message), code);
}

// Sandbox ids are [a-z0-9] and ports are numbers by the time they reach a page, so nothing needs escaping.
Reply page(int status, std::string_view title, std::string_view text) {
    return {
        status, "text/html; charset=utf-8",
        fmt::format("<html><head><title>{0}</title></head><body style=\"font-family:sans-serif;margin:3rem\">"
                    "<h1>{0}</h1><p>{1}</p></body></html>",
                    title, text)};
}

}  // namespace

bool is_browser(std::string_view user_agent) {
    return user_agent.starts_with("Mozilla/");
}

Reply sandbox_not_found(const std::string& sandbox_id, bool browser) {
    if (browser)
        return page(502, "Sandbox Not Found",
                    fmt::format("The sandbox {} was not found. It may have ended.", sandbox_id));
    return {502, kJson,
            fmt::format(R"({{"sandboxId":{},"message":"The sandbox was not found","code":502}})",
                        log::json_quote(sandbox_id))};
}

Reply port_not_open(const Route& route, bool browser) {
    if (browser)
        return page(502, "Closed Port",
                    fmt::format("The sandbox {} is running but there is no service running on port {}.",
                                route.sandbox_id, route.port));
    return {
        502, kJson,
        fmt::format(
            R"({{"sandboxId":{},"message":"The sandbox is running but port is not open","port":{},"code":502}})",
            log::json_quote(route.sandbox_id), route.port)};
}

Reply token_refused(const Route& route, BadToken what, bool browser) {
    const bool missing = what == BadToken::missing;
    const std::string message =
        missing ? "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing"
                : "Sandbox is secured with traffic access token. Provided token in header "
                  "'e2b-traffic-access-token' is invalid";
    if (browser)
        return page(403, missing ? "Missing Traffic Access Token" : "Invalid Traffic Access Token",
                    fmt::format("Sandbox {}, port {}: {}.", route.sandbox_id, route.port, message));
    return {403, kJson, message_json(route, message, 403)};
}

Reply access_refused(const Route& route, bool browser) {
    constexpr std::string_view kMessage =
        "The sandbox is paused, and only a request with its access token in the header 'X-Access-Token', or a valid "
        "signature, resumes it";
    if (browser)
        return page(403, "Access Refused",
                    fmt::format("Sandbox {}, port {}: {}.", route.sandbox_id, route.port, kMessage));
    return {403, kJson, message_json(route, kMessage, 403)};
}

Reply not_ready(const Route& route, const Error& error, bool browser) {
    const int status = http_status(error.code);
    // What a machine's failure says is for the operator's log.
    const std::string_view message =
        status == 409   ? "The sandbox is being paused or resumed, try again"
        : status == 429 ? "The sandbox cannot resume: its team has reached its limit of running sandboxes"
                        : "The sandbox could not be resumed";
    if (browser)
        return page(status, "Sandbox Not Ready",
                    fmt::format("Sandbox {}, port {}: {}.", route.sandbox_id, route.port, message));
    return {status, kJson, message_json(route, message, status)};
}

Reply reserved_path() {
    return {404, kJson, error_body(404, "this path is reserved for the control plane")};
}

Reply refusal(const Error& error) {
    const int status = http_status(error.code);
    return {status, kJson,
            error_body(status, error.message)};
}

}  // namespace gb::ingress
