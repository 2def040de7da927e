// SPDX-License-Identifier: Apache-2.0
// The way out of one sandbox for what packet rules alone do not decide: it answers the guest's questions for
// names, reads what its connections ask for (SNI of TLS, Host of HTTP), judges, and carries them. Slot rules
// bring the connections here; while no gateway serves a slot nothing of that leaves it.
//
//   a connection → what does it ask for? → plan() → refused: reset (403 where it is HTTP)
//                                                 → direct, resolved: a tunnel of bytes
//                                                 → intercepted: TLS ends here, requests are relayed with
//                                                 headers
//
// A connection is accepted before it can be judged by name, so a refused one looks open for a moment. What a
// name opens is believed only if this server's own resolver gave the address for that name. Every decision is
// told once, the end of every connection that was carried too.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/result.h"
#include "base/unique_fd.h"
#include "egress/certificate_authority.h"
#include "egress/connection_budget.h"
#include "egress/counting_stream.h"
#include "egress/decision_rate.h"
#include "egress/dns_server.h"
#include "egress/header_rules.h"
#include "egress/http_relay.h"
#include "egress/pins.h"
#include "egress/plan.h"
#include "egress/resolver.h"
#include "egress/synthetic_names.h"
#include "http/tls_handshake.h"
#include "net/decision.h"
#include "net/slot.h"

namespace gb::egress {

// What all gateways of a server share.
struct GatewayShared {
    asio::any_io_executor executor;  // with one thread, on which everything here happens
    std::shared_ptr<Resolver> resolver;
    std::shared_ptr<http::ClientTls> tls;
    net::Ceiling ceiling;
    std::shared_ptr<ConnectionBudget> budget;
};

struct GatewayParts {
    std::string id;  // of the sandbox
    net::EgressSockets sockets;
    std::function<Result<UniqueFd>()> socket;  // a new TCP socket of the slot, non-blocking
    std::function<void(const net::Decision&)> decided;
    SecretLookup secrets;
};

class Gateway : public std::enable_shared_from_this<Gateway> {
  public:
    // Closed until it is given a policy.
    static Result<std::shared_ptr<Gateway>> start(GatewayShared shared, GatewayParts parts);

    // At once; connections that it refuses, or that would be carried in another way, are cut. `authority` is
    // needed for a policy with header rules: without it their hosts are refused.
    void set_policy(net::EgressPolicy policy, std::shared_ptr<CertificateAuthority> authority);
    void stop();  // cuts everything; nothing of `parts` is called afterwards

    [[nodiscard]] std::uint64_t suppressed() const { return rate_.suppressed(); }
    [[nodiscard]] std::size_t connections() const { return live_.size(); }

  private:
    using Socket = std::shared_ptr<asio::ip::tcp::socket>;
    // A connection as the guest wanted it.
    struct Wanted {
        net::Ipv4 address;
        std::uint16_t port = 0, source_port = 0;
        std::optional<std::string> name;
        bool synthetic = false;
    };
    // One that is carried, for a change of policy to find.
    struct Live {
        Wanted wanted;
        Plan plan;
        std::function<void()> cut;
        std::shared_ptr<ByteCounters> counters = std::make_shared<ByteCounters>();
        bool told = false;    // that it is allowed: then its end is told too
        bool denied = false;  // one of its requests was
    };
    class Entry;

    Gateway(GatewayShared shared, GatewayParts parts);
    awaitable<DnsReply> answer(DnsQuery query);
    awaitable<void> accept();
    awaitable<void> serve(Socket guest, ConnectionBudget::Place place);
    awaitable<void> serve_tls(Socket guest, Wanted wanted);
    awaitable<void> serve_http(Socket guest, Wanted wanted);
    awaitable<void> serve_other(Socket guest, Wanted wanted);
    awaitable<void> carry(Socket guest, const Wanted& wanted, Plan plan);
    awaitable<void> intercept(Socket guest, Wanted wanted, Plan plan);
    awaitable<Result<Route>> route_plain(Wanted& wanted, Entry& entry, std::string_view host);
    awaitable<Result<Route>> route_intercepted(const Wanted& wanted, std::vector<net::HeaderRule> headers,
                                               std::string_view host);
    // Whether the name has the address, for plans that believe it; otherwise why not.
    awaitable<std::optional<std::string>> doubt(const Wanted& wanted, const Plan& plan);
    [[nodiscard]] awaitable<Result<Socket>> dial(Wanted wanted);
    awaitable<Result<Socket>> connect(net::Ipv4 address, std::uint16_t port);
    awaitable<Result<Socket>> connect_proxy(net::ProxyAddress proxy, Wanted wanted);

    [[nodiscard]] Plan plan_for(const Wanted& wanted) const;
    SecretLookup secrets_for(const Wanted& wanted);
    void refuse(asio::ip::tcp::socket& guest, const Wanted& wanted, std::string rule);
    void tell(net::Verdict verdict, const Wanted& wanted, std::string rule, const ByteCounters& bytes = {});
    void tell_question(net::Verdict verdict, const DnsQuestion& question, std::string rule);
    void tell(net::Decision decision);
    void tell_end(Live& live);

    GatewayShared shared_;
    GatewayParts parts_;
    net::EgressPolicy policy_ = net::closed_policy();
    std::shared_ptr<CertificateAuthority> authority_;
    std::shared_ptr<Pins> pins_ = std::make_shared<Pins>();
    SyntheticNames synthetic_;
    std::unique_ptr<DnsServer> dns_;
    asio::ip::tcp::acceptor acceptor_;
    DecisionRate rate_;
    std::shared_ptr<std::size_t> places_ = std::make_shared<std::size_t>(0);  // of its connections
    std::map<std::uint64_t, Live> live_;
    std::uint64_t next_ = 0;
    bool stopped_ = false;
};

}  // namespace gb::egress
