// SPDX-License-Identifier: Apache-2.0
// What the server counts about itself, in the text format of Prometheus. Safe to use from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace gb::api {

class ServerMetrics {
  public:
    ServerMetrics();
    ~ServerMetrics();
    ServerMetrics(const ServerMetrics&) = delete;
    ServerMetrics& operator=(const ServerMetrics&) = delete;

    // `route` is a route's name, never a path: paths hold ids without number.
    void count_request(std::string_view method, std::string_view route, int status, double seconds);

    struct Gauges {
        std::size_t running = 0, paused = 0, in_transition = 0;
        std::size_t connections = 0;
        std::uint64_t memory_available_bytes = 0, disk_available_bytes = 0;
        std::map<std::string, std::size_t> warm;  // by template; all that ever had some
        std::uint64_t creates_from_pool = 0, creates_from_restore = 0;  // so far
        std::map<std::string, std::uint64_t> team_disk_bytes;  // by slug
    };
    // Sets the gauges, takes the counts over and writes everything out.
    [[nodiscard]] std::string text(const Gauges& gauges) const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace gb::api
