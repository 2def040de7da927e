// SPDX-License-Identifier: Apache-2.0
// egress_bench [ROUNDS]: what the way out of a sandbox costs, without a machine that would be slower than it
// (bench_world.h; needs root). A line a figure: its name, a tab, its value; the ways are taken in turn.
//
//   rate WAY DIRECTION CONNECTIONS       bytes a second; up is from the guest to the internet
//   processor WAY DIRECTION CONNECTIONS  seconds for 1 GiB, both ends with all that is between them
//   new WAY                              milliseconds to connect, to have one byte back, and to close
//   policy WAY call | refused | cut      milliseconds from the begin of a change that closes everything until
//                                        it has returned, a new connection is refused, a carried one is cut
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <openssl/ssl.h>

#include "base/log.h"
#include "egress/bench_world.h"
#include "egress/dns_message.h"
#include "net/slot_rules.h"

namespace gb::egress {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t kReadAtOnce = 128 << 10;
constexpr int kNewConnections = 50;  // a round and way; ended ones count against a slot's limit for seconds
constexpr int kChanges = 2;          // a round
constexpr auto kRamp = 100ms, kWindow = 200ms;

double ms_between(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double, std::milli>(to - from).count();
}

void print(std::string_view name, double value) {
    fmt::print("{}\t{}\n", name, value);
    std::fflush(stdout);
}

// What OpenSSL's client sends first to that host.
std::string hello_for(const std::string& host) {
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    SSL* ssl = SSL_new(context);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_tlsext_host_name(ssl, host.c_str());
    SSL_set_connect_state(ssl);
    SSL_do_handshake(ssl);
    char* data = nullptr;
    const long size = BIO_get_mem_data(SSL_get_wbio(ssl), &data);
    std::string out(data, static_cast<std::size_t>(size));
    SSL_free(ssl);
    SSL_CTX_free(context);
    return out;
}

sockaddr_in server_address(std::uint16_t port) {
    return {.sin_family = AF_INET,
            .sin_port = htons(port),
            .sin_addr = {htonl(BenchWorld::kServer.value)},
            .sin_zero = {}};
}

class Bench {
  public:
    explicit Bench(std::string hello) : hello_(std::move(hello)) {}

    Status run(int rounds) {
        GB_TRY_ASSIGN(world_, BenchWorld::create(hello_.size()));
        GB_TRY(ask_for_name());
        const std::vector<std::pair<std::string, int>> ways{{"plain", world_->plain_guest()},
                                                            {"relay", world_->relay_guest()},
                                                            {"address", world_->address().guest()},
                                                            {"name", world_->name().guest()}};
        for (int round = 0; round < rounds; ++round) {
            for (int connections : {1, 8})
                for (Ask ask : {Ask::take, Ask::give})
                    for (const auto& [way, guest] : ways) GB_TRY(carry(way, guest, ask, connections));
            for (const auto& [way, guest] : ways) GB_TRY(open_new(way, guest));
            for (int i = 0; i < kChanges; ++i) {
                GB_TRY(close_all("address", world_->address(), BenchWorld::address_policy()));
                GB_TRY(close_all("name", world_->name(), BenchWorld::name_policy()));
            }
        }
        return {};
    }

  private:
    // From the namespace of the calling thread. Invalid when it was refused.
    UniqueFd open(Ask ask, timeval patience = {.tv_sec = 3, .tv_usec = 0}) const {
        UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const int on = 1;
        ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        const sockaddr_in to = server_address(443);
        const std::string first = hello_ + static_cast<char>(ask);
        if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
            ::send(fd.get(), first.data(), first.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(first.size()))
            fd.reset();
        return fd;
    }

    static bool echo(const UniqueFd& fd) {
        char byte = 'x';
        return ::send(fd.get(), &byte, 1, MSG_NOSIGNAL) == 1 && ::recv(fd.get(), &byte, 1, 0) == 1;
    }

    // As a guest does before it connects to a name.
    Status ask_for_name() {
        GB_TRY_ASSIGN(auto scope, net::NetnsScope::enter(world_->name().guest()));
        UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        const timeval patience{.tv_sec = 3, .tv_usec = 0};
        ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        const sockaddr_in to = server_address(net::kDnsPort);
        const std::string query = make_query(1, {std::string(BenchWorld::kName), DnsType::a}, false);
        char answer[512];
        if (::sendto(fd.get(), query.data(), query.size(), 0, reinterpret_cast<const sockaddr*>(&to),
                     sizeof to) < 0 ||
            ::recv(fd.get(), answer, sizeof answer, 0) < 0)
            return fail_errno("ask for the name");
        return {};
    }

    Status carry(const std::string& way, int guest, Ask ask, int connections) {
        std::atomic<std::uint64_t> given = 0;
        std::atomic<bool> stopping = false, failed = false;
        std::latch connected(connections + 1);
        std::vector<std::jthread> clients;
        for (int i = 0; i < connections; ++i)
            clients.emplace_back([&] {
                auto scope = net::NetnsScope::enter(guest);
                const UniqueFd fd = open(ask);
                if (!scope || !fd) failed = true;
                connected.arrive_and_wait();
                std::vector<char> piece(kReadAtOnce);
                while (!stopping && !failed) {
                    const ssize_t n = ask == Ask::take
                                          ? ::send(fd.get(), piece.data(), piece.size(), MSG_NOSIGNAL)
                                          : ::recv(fd.get(), piece.data(), piece.size(), 0);
                    if (n <= 0) failed = true;
                    if (ask == Ask::give && n > 0) given += static_cast<std::uint64_t>(n);
                }
            });
        connected.arrive_and_wait();
        std::this_thread::sleep_for(kRamp);
        auto moved = [&] { return ask == Ask::take ? world_->server().taken() : given.load(); };
        const auto started = Clock::now();
        const std::uint64_t before = moved();
        const double used = processor_seconds();
        std::this_thread::sleep_for(kWindow);
        const auto bytes = static_cast<double>(moved() - before);
        const double rate = bytes * 1000 / ms_between(started, Clock::now());
        const double processor = processor_seconds() - used;
        stopping = true;
        clients.clear();
        if (failed) return fail(ErrorCode::internal, "a connection of way " + way + " broke");
        world_->server().wait_idle();
        const std::string what = fmt::format("{} {} {}", way, ask == Ask::take ? "up" : "down", connections);
        print("rate " + what, rate);
        if (bytes > 0) print("processor " + what, processor / (bytes / (1 << 30)));
        return {};
    }

    static double processor_seconds() {
        rusage used{};
        ::getrusage(RUSAGE_SELF, &used);
        auto seconds = [](const timeval& t) {
            return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
        };
        return seconds(used.ru_utime) + seconds(used.ru_stime);
    }

    Status open_new(const std::string& way, int guest) {
        GB_TRY_ASSIGN(auto scope, net::NetnsScope::enter(guest));
        for (int i = 0; i < kNewConnections; ++i) {
            const auto started = Clock::now();
            UniqueFd fd = open(Ask::echo);
            if (!fd || !echo(fd)) return fail_errno("a new connection of way " + way);
            fd.reset();
            const auto ended = Clock::now();
            print("new " + way, ms_between(started, ended));
            world_->server().wait_idle();
        }
        return {};
    }

    // Two programs of the guest meanwhile: one has a connection and uses it, one makes new ones all the time.
    Status close_all(const std::string& way, BenchSlot& slot, const net::EgressPolicy& afterwards) {
        constexpr auto kNever = Clock::time_point::max();
        std::latch carried(2);
        std::atomic<Clock::time_point> started = kNever, returned = kNever;
        Clock::time_point cut, refused;
        bool late = false;  // one that was begun after the change was answered all the same
        auto inside = [&slot](auto body) {
            return std::jthread([&slot, body] {
                auto scope = net::NetnsScope::enter(slot.guest());
                if (scope) body();
            });
        };
        Status changed;
        {
            const std::jthread old = inside([&] {
                const UniqueFd fd = open(Ask::echo);
                (void)echo(fd);
                carried.arrive_and_wait();
                while (echo(fd)) std::this_thread::sleep_for(100us);
                cut = Clock::now();
            });
            carried.arrive_and_wait();
            const std::jthread young = inside([&] {
                for (;;) {
                    std::this_thread::sleep_for(200us);
                    const auto begun = Clock::now();
                    const UniqueFd fd = open(Ask::echo, {.tv_sec = 0, .tv_usec = 5'000});
                    const bool answered = fd && echo(fd);
                    // One that was let in before the change may wait for an answer that the change holds
                    // back.
                    const bool silent = !answered && (errno == EAGAIN || errno == EINPROGRESS);
                    refused = Clock::now();
                    if (answered && begun > returned.load()) late = true;
                    if (late || (!answered && !silent && begun > started.load())) return;
                }
            });
            std::this_thread::sleep_for(30ms);
            started = Clock::now();
            changed = slot.set_policy(net::closed_policy());
            returned = Clock::now();
        }
        GB_TRY(changed);
        if (late) return fail(ErrorCode::internal, "a change of policy returned before it was in force");
        print("policy " + way + " call", ms_between(started, returned));
        print("policy " + way + " refused", ms_between(started, refused));
        print("policy " + way + " cut", ms_between(started, cut));
        std::this_thread::sleep_for(50ms);  // so that the next change does not wait for this one
        GB_TRY(slot.set_policy(afterwards));
        world_->server().wait_idle();
        return {};
    }

    std::string hello_;
    std::unique_ptr<BenchWorld> world_;
};

}  // namespace
}  // namespace gb::egress

int main(int argc, char** argv) {
    gb::log::set_level(gb::log::Level::warn);
    std::signal(SIGPIPE, SIG_IGN);  // splice(2) knows no other way
    const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 45;
    gb::egress::Bench bench(gb::egress::hello_for(std::string(gb::egress::BenchWorld::kName)));
    gb::Status status = bench.run(rounds);
    if (!status) fmt::print(stderr, "{}\n", status.error().message);
    return status ? 0 : 1;
}
