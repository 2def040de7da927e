// SPDX-License-Identifier: Apache-2.0
#include "api/router.h"

#include <fmt/format.h>


namespace gb::api {
namespace {

std::vector<std::string> split(std::string_view path) {
    std::vector<std::string> out;
    while (!path.empty()) {
        std::size_t slash = path.find('/');
        if (std::string_view part = path.substr(0, slash); !part.empty()) out.emplace_back(part);
        path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    }
    return out;
}

bool is_parameter(std::string_view part) {
    return part.starts_with('{') && part.ends_with('}');
}

bool matches(const Route& route, const std::vector<std::string>& segments, std::map<std::string, std::string>& params) {
    if (route.pattern.size() != segments.size()) return false;
    params.clear();
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const std::string& part = route.pattern[i];
        if (is_parameter(part))
            params[part.substr(1, part.size() - 2)] = segments[i];
        else if (part != segments[i])
            return false;
    }
    return true;
}

}  // namespace

void Router::add(std::string method, std::string_view path, Handler handler, Access access) {
    routes_.push_back({std::move(method), std::string(path), split(path), access, std::move(handler)});
}

Result<Router::Match> Router::match(std::string_view method, const http::Target& target) const {
    const std::vector<std::string> segments = target.segments();
    Match match{nullptr, {}};
    bool path_known = false;
    // Literal routes are registered like any other; one without parameters wins over one with.
    std::size_t fewest = SIZE_MAX;
    std::map<std::string, std::string> params;
    for (const Route& route : routes_) {
        if (!matches(route, segments, params)) continue;
        path_known = true;
        if (route.method != method || params.size() >= fewest) continue;
        fewest = params.size();
        match = {&route, params};
    }
    if (match.route != nullptr) return match;
    if (path_known)
        return fail(ErrorCode::unimplemented, fmt::format("method {} is not allowed on {}", method, target.path));
    return fail(ErrorCode::not_found, fmt::format("no such route: {} {}", method, target.path));
}

}  // namespace gb::api
