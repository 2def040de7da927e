// SPDX-License-Identifier: Apache-2.0
#include "egress/upstream.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/error_tuple.h"
#include "egress/dns_exchange.h"
#include "net/host_name.h"

namespace gb::egress {
namespace {

using Clock = std::chrono::steady_clock;

// A question that is being asked, and those who wait for its answer.
struct Flight {
    explicit Flight(const asio::any_io_executor& executor) : done(executor, Clock::time_point::max()) {}
    std::optional<Result<DnsAnswer>> result;
    asio::steady_timer done;  // cancelled when there is a result
    Cut cut;
};

}  // namespace

Result<DnsEndpoint> parse_endpoint(std::string_view text) {
    auto where = net::parse_authority(text);
    if (!where || where->host.kind != net::Host::Kind::ipv4)
        return fail(ErrorCode::invalid_argument,
                    "a resolver is an IPv4 address, such as 1.1.1.1 or 1.1.1.1:53");
    return DnsEndpoint{where->host.address, where->port.value_or(DnsEndpoint{}.port)};
}

std::string to_string(const DnsEndpoint& endpoint) {
    return fmt::format("{}:{}", net::to_string(endpoint.address), endpoint.port);
}

std::vector<DnsEndpoint> upstreams_of_resolv_conf(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r", kKeyword = "nameserver";
    std::vector<DnsEndpoint> servers;
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (!line.starts_with(kKeyword)) continue;
        line.remove_prefix(kKeyword.size());
        const auto begin = line.find_first_not_of(kBlank);
        if (begin == 0 || begin == std::string_view::npos) continue;
        line.remove_prefix(begin);
        if (auto address = net::parse_ipv4(line.substr(0, line.find_first_of(kBlank))))
            servers.push_back({*address});
    }
    return servers;
}

struct Upstream::State : std::enable_shared_from_this<State> {
    State(asio::any_io_executor e, UpstreamOptions o) : executor(std::move(e)), options(std::move(o)) {}

    asio::any_io_executor executor;
    UpstreamOptions options;
    bool stopped = false;
    std::size_t preferred = 0;  // index of the server that answered last
    std::map<DnsQuestion, std::shared_ptr<Flight>> flights;
    std::map<std::string, std::size_t> waiting;  // calls of each owner

    awaitable<Result<DnsAnswer>> ask(std::string owner, DnsQuestion question);
    Result<std::shared_ptr<Flight>> join(const DnsQuestion& question);
    awaitable<void> fly(std::shared_ptr<State> self, DnsQuestion question, std::shared_ptr<Flight> flight);
    awaitable<Result<DnsAnswer>> ask_servers(const DnsQuestion& question, Cut& cut);
    awaitable<Result<DnsAnswer>> ask_server(DnsEndpoint server, const DnsQuestion& question,
                                            Clock::time_point deadline, Cut& cut);
    void leave(const std::string& owner) {
        const auto it = waiting.find(owner);
        if (--it->second == 0) waiting.erase(it);
    }
};

Upstream::Upstream(asio::any_io_executor executor, UpstreamOptions options)
    : state_(std::make_shared<State>(std::move(executor), std::move(options))) {}

Upstream::~Upstream() {
    stop();
}

void Upstream::stop() {
    state_->stopped = true;
    for (auto& [question, flight] : state_->flights) flight->cut.now();
}

awaitable<Result<DnsAnswer>> Upstream::ask(std::string owner, DnsQuestion question) {
    const auto state = state_;  // this object may be gone before the answer comes
    co_return co_await state->ask(std::move(owner), std::move(question));
}

awaitable<Result<DnsAnswer>> Upstream::State::ask(std::string owner, DnsQuestion question) {
    const bool root = question.name.empty() && question.type == DnsType::ns;
    if ((!root && !is_dns_name(question.name)) || rule_for(question.type) != TypeRule::ask)
        co_return fail(ErrorCode::invalid_argument, "not a dns question that can be asked");
    if (stopped) co_return fail(ErrorCode::canceled, "the dns client is stopped");
    if (const auto it = waiting.find(owner); it != waiting.end() && it->second >= options.max_per_owner)
        co_return fail(ErrorCode::resource_exhausted,
                       fmt::format("{} dns questions of this sandbox are under way", it->second));
    GB_CO_TRY_ASSIGN(const auto flight, join(question));

    ++waiting[owner];
    struct Leave {
        State& state;
        const std::string& owner;
        ~Leave() { state.leave(owner); }
    } leave{*this, owner};
    if (!flight->result) co_await flight->done.async_wait(kErrorTuple);
    if (!flight->result) co_return fail(ErrorCode::canceled, "the dns question was given up");
    co_return *flight->result;
}

Result<std::shared_ptr<Flight>> Upstream::State::join(const DnsQuestion& question) {
    if (const auto it = flights.find(question); it != flights.end()) return it->second;
    if (flights.size() >= options.max_questions)
        return fail(ErrorCode::resource_exhausted,
                    fmt::format("{} dns questions are under way", flights.size()));
    auto flight = std::make_shared<Flight>(executor);
    flights.emplace(question, flight);
    asio::co_spawn(executor, fly(shared_from_this(), question, flight),
                   [](const std::exception_ptr& failure) {
                       if (failure) std::rethrow_exception(failure);
                   });
    return flight;
}

// `self` keeps the state alive while a question is under way.
awaitable<void> Upstream::State::fly(std::shared_ptr<State> self, DnsQuestion question,
                                     std::shared_ptr<Flight> flight) {
    flight->result = co_await ask_servers(question, flight->cut);
    flights.erase(question);
    flight->done.cancel();
    (void)self;
}

awaitable<Result<DnsAnswer>> Upstream::State::ask_servers(const DnsQuestion& question, Cut& cut) {
    constexpr std::size_t kRounds = 2;  // a lost packet is not the end, even with one server
    const auto deadline = Clock::now() + options.total;
    const std::size_t count = options.servers.size(), first = preferred;
    Result<DnsAnswer> last = fail(ErrorCode::unavailable, "no dns server is configured");
    for (std::size_t i = 0; i < count * kRounds && Clock::now() < deadline; ++i) {
        const std::size_t index = (first + i) % count;
        last = co_await ask_server(options.servers[index], question, deadline, cut);
        if (stopped) co_return fail(ErrorCode::canceled, "the dns client is stopped");
        if (!last) continue;
        if (last->rcode == Rcode::no_error || last->rcode == Rcode::name_error) {
            preferred = index;
            break;
        }
        last = fail(ErrorCode::unavailable, fmt::format("the dns server {} answered with failure {}",
                                                        net::to_string(options.servers[index].address),
                                                        static_cast<int>(last->rcode)));
    }
    co_return last;
}

awaitable<Result<DnsAnswer>> Upstream::State::ask_server(DnsEndpoint server, const DnsQuestion& question,
                                                         Clock::time_point deadline, Cut& cut) {
    auto limit = [&] { return std::min(deadline, Clock::now() + options.per_server); };
    GB_CO_TRY_ASSIGN(auto answer, co_await ask_over_udp(server, question, true, limit(), cut));
    // Servers from before EDNS (RFC 6891 section 7).
    if (answer.rcode == Rcode::format_error || answer.rcode == Rcode::not_implemented) {
        GB_CO_TRY_ASSIGN(answer, co_await ask_over_udp(server, question, false, limit(), cut));
    }
    if (answer.truncated) {
        GB_CO_TRY_ASSIGN(answer, co_await ask_over_tcp(server, question, limit(), cut));
        if (answer.truncated)
            co_return fail(ErrorCode::unavailable, "the dns server cut its answer over TCP");
    }
    co_return answer;
}

}  // namespace gb::egress
