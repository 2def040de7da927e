// SPDX-License-Identifier: Apache-2.0
// From method and path to a handler. Every route answers JSON, unknown ones too (contract 2.1).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/server.h"
#include "store/records.h"

namespace gb::api {

inline constexpr std::size_t kMaxBody = 65536;  // bytes of a request whose fields are few and short

struct Call {
    http::Exchange& exchange;
    Team team;                                  // of the key that was given
    std::map<std::string, std::string> params;  // {name} parts of the path, decoded
    std::string sandbox_id;                     // for the log: the one in the path, or the one that was made
};

// A handler answers by itself, or returns the error to answer with.
using Handler = std::function<http::awaitable<Status>(Call&)>;

enum class Access {
    open,
    team_key,  // X-API-Key
    admin,     // X-Admin-Token: the operator
};

struct Route {
    std::string method;
    std::string path;                  // as it was registered: the name of the route
    std::vector<std::string> pattern;  // "{name}" matches one segment
    Access access;
    Handler handler;
};

class Router {
  public:
    void add(std::string method, std::string_view path, Handler handler, Access access = Access::team_key);

    struct Match {
        const Route* route;
        std::map<std::string, std::string> params;
    };
    // not_found, or unimplemented (answered 405) when the path exists with other methods.
    [[nodiscard]] Result<Match> match(std::string_view method, const http::Target& target) const;

  private:
    std::vector<Route> routes_;
};

}  // namespace gb::api
