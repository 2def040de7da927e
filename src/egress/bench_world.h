// SPDX-License-Identifier: Apache-2.0
// For egress_bench: an internet with one server, and four ways to it that have the same links, all in
// namespaces made here and gone with the object.
//
//   plain     guest ── router ── host, masquerade ── internet            no other rule anywhere
//   relay     guest ── router, bare relay ── host, masquerade ── internet
//   address   guest ── slot ── host ── internet                          the server's address is allowed
//   name      guest ── slot and its gateway ── host ── internet          the server's name is allowed
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "base/unique_fd.h"
#include "egress/bench_relay.h"
#include "egress/service.h"
#include "net/host_network.h"
#include "net/netns.h"
#include "net/slot.h"

namespace gb::egress {

// What a client asks of the server, after as many bytes as its TLS hello has.
enum class Ask : char {
    take = 't',  // the server reads and counts
    give = 'g',  // it writes without end
    echo = 'e',  // it returns every byte
};

// The server of the internet, on port 443 of every address there; it knows the name too, by UDP.
class BenchServer {
  public:
    static Result<std::unique_ptr<BenchServer>> start(int netns, std::size_t hello_size);
    ~BenchServer();

    [[nodiscard]] std::uint64_t taken() const { return taken_; }
    // Until no connection is left.
    void wait_idle() const;

  private:
    struct Connection {
        std::thread thread;
        std::atomic<bool> ended = false;
    };
    BenchServer() = default;
    void accept(std::size_t hello_size);
    void serve(int fd, Ask ask);
    void answer_names();

    UniqueFd listener_, names_;
    std::atomic<bool> stopping_ = false;
    std::atomic<std::uint64_t> taken_ = 0;
    std::atomic<int> open_ = 0;
    std::list<Connection> connections_;
    std::thread acceptor_, namer_;
};

// A slot with its gateway and with somebody who reads its decisions, as every sandbox has.
class BenchSlot {
  public:
    static Result<std::unique_ptr<BenchSlot>> create(net::HostNetwork& host, EgressService& service,
                                                     std::string id);
    ~BenchSlot();

    [[nodiscard]] int guest() const { return slot_->guest_netns_fd(); }
    Status set_policy(const net::EgressPolicy& policy);  // in the order of a server

  private:
    BenchSlot() = default;
    std::unique_ptr<net::Slot> slot_;
    std::unique_ptr<EgressPort> port_;
    std::atomic<bool> stopping_ = false;
    std::thread reader_;
};

class BenchWorld {
  public:
    static constexpr std::string_view kName = "bench.example.com";
    static constexpr net::Ipv4 kServer{0x08080808};

    // The calling thread is inside "the host" until the object ends.
    static Result<std::unique_ptr<BenchWorld>> create(std::size_t hello_size);

    [[nodiscard]] BenchServer& server() { return *server_; }
    [[nodiscard]] BenchSlot& address() { return *address_; }
    [[nodiscard]] BenchSlot& name() { return *name_; }
    [[nodiscard]] int plain_guest() const { return plain_.guest.get(); }
    [[nodiscard]] int relay_guest() const { return relayed_.guest.get(); }

    static net::EgressPolicy address_policy();
    static net::EgressPolicy name_policy();

  private:
    struct BareWay {
        UniqueFd host, router, guest;
    };
    BenchWorld() = default;
    Status make_host();
    // `link` is a free network of four addresses between its host and the internet.
    Status make_bare_way(BareWay& way, std::string_view name, net::Ipv4 link);
    Status start_relay();

    std::optional<net::NetnsScope> host_;
    UniqueFd internet_;
    BareWay plain_, relayed_;
    std::unique_ptr<BenchServer> server_;
    std::unique_ptr<BenchRelay> relay_;
    std::unique_ptr<net::HostNetwork> network_;
    std::unique_ptr<EgressService> service_;
    std::unique_ptr<BenchSlot> address_, name_;
};

}  // namespace gb::egress
