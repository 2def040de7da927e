// SPDX-License-Identifier: Apache-2.0
#include "api/server_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "base/clock.h"
#include "base/version.h"

namespace gb::api {
namespace {

std::uint64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t size = 0, resident = 0;
    statm >> size >> resident;
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// For what is counted elsewhere. Of two answers at once, the later count may be there already.
void raise_to(prometheus::Counter& counter, double to) {
    counter.Increment(std::max(0.0, to - counter.Value()));
}

}  // namespace

struct ServerMetrics::Impl {
    prometheus::Registry registry;
    prometheus::Family<prometheus::Counter>& requests =
        prometheus::BuildCounter().Name("glovebox_api_requests_total").Help("Answered requests").Register(registry);
    prometheus::Family<prometheus::Histogram>& durations = prometheus::BuildHistogram()
                                                               .Name("glovebox_api_request_seconds")
                                                               .Help("Time from a request's head to its answer")
                                                               .Register(registry);
    prometheus::Family<prometheus::Gauge>& sandboxes =
        prometheus::BuildGauge().Name("glovebox_sandboxes").Help("Sandboxes by state").Register(registry);
    prometheus::Family<prometheus::Gauge>& host =
        prometheus::BuildGauge().Name("glovebox_available_bytes").Help("What the host has left").Register(registry);
    prometheus::Family<prometheus::Gauge>& disk = prometheus::BuildGauge()
                                                      .Name("glovebox_disk_bytes")
                                                      .Help("What the sandboxes of a team take of the disk")
                                                      .Register(registry);
    prometheus::Family<prometheus::Gauge>& warm = prometheus::BuildGauge()
                                                      .Name("glovebox_warm_sandboxes")
                                                      .Help("Restored sandboxes that wait for an owner")
                                                      .Register(registry);
    prometheus::Family<prometheus::Counter>& creates = prometheus::BuildCounter()
                                                           .Name("glovebox_creates_total")
                                                           .Help("Sandboxes made, by where their machine came from")
                                                           .Register(registry);
    prometheus::Counter& from_pool = creates.Add({{"from", "pool"}});
    prometheus::Counter& from_restore = creates.Add({{"from", "restore"}});
    prometheus::Gauge& connections = prometheus::BuildGauge()
                                         .Name("glovebox_connections")
                                         .Help("Open connections of clients")
                                         .Register(registry)
                                         .Add({});
    prometheus::Gauge& resident = prometheus::BuildGauge()
                                      .Name("process_resident_memory_bytes")
                                      .Help("Resident memory of the server")
                                      .Register(registry)
                                      .Add({});
    prometheus::Counter& processor = prometheus::BuildCounter()
                                         .Name("process_cpu_seconds_total")
                                         .Help("Processor time of the server")
                                         .Register(registry)
                                         .Add({});
    prometheus::Gauge& started = prometheus::BuildGauge()
                                     .Name("process_start_time_seconds")
                                     .Help("When the server started, Unix time")
                                     .Register(registry)
                                     .Add({});
};

ServerMetrics::ServerMetrics() : impl_(std::make_unique<Impl>()) {
    prometheus::BuildGauge()
        .Name("glovebox_build_info")
        .Help("1; the label says which version runs")
        .Register(impl_->registry)
        .Add({{"version", std::string(version())}})
        .Set(1);
    impl_->started.Set(static_cast<double>(now_ms()) / 1000);
}

ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::count_request(std::string_view method, std::string_view route, int status, double seconds) {
    const prometheus::Labels labels{{"method", std::string(method)}, {"route", std::string(route)}};
    prometheus::Labels with_status = labels;
    with_status["status"] = std::to_string(status);
    impl_->requests.Add(with_status).Increment();
    impl_->durations
        .Add(labels, prometheus::Histogram::BucketBoundaries{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30})
        .Observe(seconds);
}

std::string ServerMetrics::text(const Gauges& gauges) const {
    impl_->sandboxes.Add({{"state", "running"}}).Set(static_cast<double>(gauges.running));
    impl_->sandboxes.Add({{"state", "paused"}}).Set(static_cast<double>(gauges.paused));
    impl_->sandboxes.Add({{"state", "in_transition"}}).Set(static_cast<double>(gauges.in_transition));
    impl_->host.Add({{"resource", "memory"}}).Set(static_cast<double>(gauges.memory_available_bytes));
    impl_->host.Add({{"resource", "disk"}}).Set(static_cast<double>(gauges.disk_available_bytes));
    for (const auto& [team, bytes] : gauges.team_disk_bytes)
        impl_->disk.Add({{"team", team}}).Set(static_cast<double>(bytes));
    for (const auto& [name, count] : gauges.warm)
        impl_->warm.Add({{"template", name}}).Set(static_cast<double>(count));
    raise_to(impl_->from_pool, static_cast<double>(gauges.creates_from_pool));
    raise_to(impl_->from_restore, static_cast<double>(gauges.creates_from_restore));
    impl_->connections.Set(static_cast<double>(gauges.connections));
    impl_->resident.Set(static_cast<double>(resident_bytes()));
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const double used = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                        static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    raise_to(impl_->processor, used);
    return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace gb::api
