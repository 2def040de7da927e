// SPDX-License-Identifier: Apache-2.0
#include "egress/gateway.h"

#include <algorithm>
#include <utility>

#include <linux/netfilter_ipv4.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/error_tuple.h"
#include "base/log.h"
#include "egress/dns_answerer.h"
#include "egress/hello_reader.h"
#include "egress/socks5.h"
#include "egress/tunnel.h"
#include "net/slot_rules.h"

namespace gb::egress {
namespace {

using asio::ip::tcp;
constexpr std::uint16_t kHttpPort = 80, kHttpsPort = 443;
constexpr std::chrono::seconds kHelloLimit{30};  // an emulated guest takes its time
constexpr std::chrono::seconds kSilentLimit{
    3};  // for who may do without a name: perhaps the server speaks first
constexpr std::chrono::seconds kConnectLimit{10};
constexpr std::chrono::seconds kTlsLimit{60};
constexpr std::chrono::milliseconds kAcceptPause{100};  // no descriptors left: perhaps soon
constexpr std::uint32_t kSyntheticTtl = 60;

std::optional<std::pair<net::Ipv4, std::uint16_t>> original_destination(tcp::socket& socket) {
    sockaddr_in to{};
    socklen_t size = sizeof to;
    if (::getsockopt(socket.native_handle(), SOL_IP, SO_ORIGINAL_DST, &to, &size) != 0) return std::nullopt;
    return std::pair{net::Ipv4{ntohl(to.sin_addr.s_addr)}, ntohs(to.sin_port)};
}

asio::ip::address_v4 asio_address(net::Ipv4 address) {
    return asio::ip::address_v4(address.value);
}

std::string type_text(DnsType type) {
    switch (type) {
        case DnsType::a:
            return "A";
        case DnsType::ns:
            return "NS";
        case DnsType::cname:
            return "CNAME";
        case DnsType::soa:
            return "SOA";
        case DnsType::ptr:
            return "PTR";
        case DnsType::mx:
            return "MX";
        case DnsType::txt:
            return "TXT";
        case DnsType::aaaa:
            return "AAAA";
        case DnsType::srv:
            return "SRV";
        case DnsType::svcb:
            return "SVCB";
        case DnsType::https:
            return "HTTPS";
        case DnsType::any:
            return "ANY";
        case DnsType::caa:
            return "CAA";
        default:
            return fmt::format("TYPE{}", static_cast<unsigned>(type));
    }
}

}  // namespace

// The registration of a connection that is carried; it ends with this object, and then its end is told.
class Gateway::Entry {
  public:
    Entry(std::shared_ptr<Gateway> gateway, Wanted wanted, Plan plan, std::function<void()> cut)
        : gateway_(std::move(gateway)), id_(gateway_->next_++) {
        Live live;
        live.wanted = std::move(wanted);
        live.plan = std::move(plan);
        live.cut = std::move(cut);
        gateway_->live_.emplace(id_, std::move(live));
    }
    ~Entry() {
        gateway_->tell_end(live());
        gateway_->live_.erase(id_);
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    [[nodiscard]] Live& live() const { return gateway_->live_.at(id_); }
    [[nodiscard]] const std::shared_ptr<ByteCounters>& counters() const { return live().counters; }
    void allowed() {
        Live& mine = live();
        gateway_->tell(net::Verdict::allow, mine.wanted, mine.plan.rule);
        mine.told = true;
    }
    // Of a connection with several requests: what it is carried for now.
    void becomes(const Wanted& wanted, const Plan& plan) {
        Live& mine = live();
        const bool same = mine.told && mine.wanted.name == wanted.name && mine.plan == plan;
        mine.wanted = wanted;
        mine.plan = plan;
        if (!same) allowed();
    }

  private:
    std::shared_ptr<Gateway> gateway_;
    std::uint64_t id_;
};

Gateway::Gateway(GatewayShared shared, GatewayParts parts)
    : shared_(std::move(shared)), parts_(std::move(parts)), acceptor_(shared_.executor) {}

Result<std::shared_ptr<Gateway>> Gateway::start(GatewayShared shared, GatewayParts parts) {
    std::shared_ptr<Gateway> out(new Gateway(std::move(shared), std::move(parts)));
    boost::system::error_code ec;
    out->acceptor_.assign(tcp::v4(), out->parts_.sockets.proxy.get(), ec);
    if (ec) return fail(ErrorCode::internal, "take the proxy's socket: " + ec.message());
    (void)out->parts_.sockets.proxy.release();
    const std::weak_ptr<Gateway> weak = out;
    GB_TRY_ASSIGN(out->dns_, DnsServer::start(out->shared_.executor, std::move(out->parts_.sockets.dns_udp),
                                              std::move(out->parts_.sockets.dns_tcp),
                                              [weak](DnsQuery query) -> awaitable<DnsReply> {
                                                  const auto self = weak.lock();
                                                  if (!self) co_return refused();
                                                  co_return co_await self->answer(std::move(query));
                                              }));
    asio::co_spawn(out->shared_.executor, out->accept(), asio::detached);
    return out;
}

void Gateway::stop() {
    if (stopped_) return;
    for (auto& [id, live] : live_) tell_end(live);  // they end later, when nobody listens any more
    stopped_ = true;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    if (dns_) dns_->stop();
    for (auto& [id, live] : live_) live.cut();
}

void Gateway::set_policy(net::EgressPolicy policy, std::shared_ptr<CertificateAuthority> authority) {
    const bool other_proxy = policy.proxy != policy_.proxy;
    policy_ = std::move(policy);
    authority_ = std::move(authority);
    for (auto& [id, live] : live_) {
        const Plan now = plan_for(live.wanted);
        if (now.way == live.plan.way && now.headers == live.plan.headers && !other_proxy) continue;
        tell(net::Verdict::deny, live.wanted, now.way == Way::refuse ? now.rule : "by-name");
        live.cut();
    }
}

Plan Gateway::plan_for(const Wanted& wanted) const {
    std::optional<std::string_view> name;
    if (wanted.name) name = *wanted.name;
    return plan(policy_, shared_.ceiling, wanted.address, name, wanted.synthetic);
}

void Gateway::tell(net::Decision decision) {
    if (stopped_ || !rate_.take(monotonic_ms())) return;
    decision.time_ms = now_ms();
    decision.source = to_string(net::kGuestAddress);
    parts_.decided(decision);
}

void Gateway::tell(net::Verdict verdict, const Wanted& wanted, std::string rule, const ByteCounters& bytes) {
    net::Decision decision;
    decision.verdict = verdict;
    decision.protocol = IPPROTO_TCP;
    decision.address = to_string(wanted.address);
    decision.port = wanted.port;
    decision.source_port = wanted.source_port;
    decision.rule = std::move(rule);
    decision.name = wanted.name.value_or("");
    decision.sent = bytes.up;
    decision.received = bytes.down;
    tell(std::move(decision));
}

void Gateway::tell_end(Live& live) {
    if (std::exchange(live.told, false)) tell(net::Verdict::end, live.wanted, "", *live.counters);
}

void Gateway::tell_question(net::Verdict verdict, const DnsQuestion& question, std::string rule) {
    net::Decision decision;
    decision.verdict = verdict;
    decision.protocol = IPPROTO_UDP;
    decision.port = net::kDnsPort;
    decision.rule = std::move(rule);
    decision.name = question.name;
    decision.question = type_text(question.type);
    tell(std::move(decision));
}

void Gateway::refuse(tcp::socket& guest, const Wanted& wanted, std::string rule) {
    tell(net::Verdict::deny, wanted, std::move(rule));
    reset(guest);
}

awaitable<DnsReply> Gateway::answer(DnsQuery query) {
    const auto self = shared_from_this();
    const DnsQuestion question = query.question;
    if (auto host = net::parse_host(question.name); !host || host->kind != net::Host::Kind::name) {
        tell_question(net::Verdict::deny, question, "invalid-name");
        co_return nxdomain();
    }
    const net::Ruling ruling = net::judge_name(policy_, shared_.ceiling, question.name);
    tell_question(ruling.verdict, question, ruling.rule);
    if (!ruling.allowed()) co_return nxdomain();
    if (policy_.proxy) {
        if (question.type != DnsType::a) co_return no_data();
        DnsRecords records;
        records.addresses.push_back({synthetic_.address_of(question.name), kSyntheticTtl});
        co_return egress::answer(std::move(records));
    }
    const auto why_closed = std::make_shared<std::string>();
    DnsReply reply = co_await answer_from(
        shared_.resolver, parts_.id, std::move(query),
        [self, why_closed](net::Ipv4 address) {
            auto why = net::closed_to_all(self->shared_.ceiling, address);
            if (why) *why_closed = *std::move(why);
            return !why;
        },
        pins_);
    if (reply.filtered) tell_question(net::Verdict::deny, question, *why_closed);
    if (reply.failure) tell_question(net::Verdict::deny, question, "unresolved");
    co_return reply;
}

awaitable<void> Gateway::accept() {
    const auto self = shared_from_this();
    asio::steady_timer pause(shared_.executor);
    while (!stopped_) {
        auto [ec, socket] = co_await acceptor_.async_accept(kErrorTuple);
        if (ec == asio::error::operation_aborted || stopped_) co_return;
        if (ec) {
            log::warn("a sandbox's connection cannot be accepted",
                      {{"sandbox", parts_.id}, {"error", ec.message()}});
            pause.expires_after(kAcceptPause);
            co_await pause.async_wait(kErrorTuple);
            continue;
        }
        asio::co_spawn(shared_.executor,
                       serve(std::make_shared<tcp::socket>(std::move(socket)), shared_.budget->take(places_)),
                       asio::detached);
    }
}

awaitable<void> Gateway::serve(Socket guest, ConnectionBudget::Place place) {
    const auto self = shared_from_this();
    boost::system::error_code ec;
    const tcp::endpoint peer = guest->remote_endpoint(ec);
    const auto destination = original_destination(*guest);
    if (ec || !destination) co_return reset(*guest);
    Wanted wanted{
        .address = destination->first, .port = destination->second, .source_port = peer.port(), .name = {}};
    if (policy_.proxy && SyntheticNames::is_synthetic(wanted.address)) {
        wanted.synthetic = true;
        wanted.name = synthetic_.name_of(wanted.address);
    }
    if (!place) co_return refuse(*guest, wanted, "too-many-connections");
    if (wanted.port == kHttpPort) {
        co_await serve_http(std::move(guest), std::move(wanted));
    } else if (wanted.port == kHttpsPort) {
        co_await serve_tls(std::move(guest), std::move(wanted));
    } else {
        co_await serve_other(std::move(guest), std::move(wanted));
    }
}

awaitable<void> Gateway::serve_other(Socket guest, Wanted wanted) {
    Plan chosen = plan_for(wanted);
    // Headers are for the web's ports.
    if (chosen.way == Way::intercepted) chosen.way = Way::resolved;
    if (chosen.way == Way::refuse) co_return refuse(*guest, wanted, chosen.rule);
    co_await carry(std::move(guest), wanted, std::move(chosen));
}

awaitable<void> Gateway::serve_tls(Socket guest, Wanted wanted) {
    const bool needs_name = plan_for(wanted).way != Way::direct;
    // While it is silent it counts as a connection that a change of policy may cut.
    ClientHello hello;
    {
        Entry waiting(shared_from_this(), wanted, plan_for(wanted), [guest] { reset(*guest); });
        hello = co_await peek_hello(guest, needs_name ? kHelloLimit : kSilentLimit);
    }
    if (stopped_ || !guest->is_open()) co_return reset(*guest);
    if (hello.state == ClientHello::State::malformed) co_return refuse(*guest, wanted, "invalid-name");
    if (hello.sni) {
        auto host = net::parse_host(*hello.sni);
        if (!host || host->kind == net::Host::Kind::ipv6) co_return refuse(*guest, wanted, "invalid-name");
        if (host->kind == net::Host::Kind::name) {
            if (wanted.synthetic && wanted.name != host->name) {
                wanted.name = host->name;
                co_return refuse(*guest, wanted, "not-of-name");
            }
            wanted.name = host->name;
        }
    }
    Plan chosen = plan_for(wanted);
    if (chosen.way == Way::refuse) co_return refuse(*guest, wanted, chosen.rule);
    if (auto why = co_await doubt(wanted, chosen)) co_return refuse(*guest, wanted, *why);
    // The policy may have changed while a name was looked up.
    if (stopped_ || plan_for(wanted) != chosen) co_return refuse(*guest, wanted, "by-name");
    if (chosen.way == Way::intercepted)
        co_await intercept(std::move(guest), std::move(wanted), std::move(chosen));
    else
        co_await carry(std::move(guest), wanted, std::move(chosen));
}

awaitable<std::optional<std::string>> Gateway::doubt(const Wanted& wanted, const Plan& chosen) {
    if (chosen.way == Way::direct || wanted.synthetic) co_return std::nullopt;
    if (policy_.proxy) co_return "not-of-name";  // names have their own addresses then, and this is none
    if (pins_->was_told(*wanted.name, wanted.address, shared_.resolver->now_ms())) co_return std::nullopt;
    const auto self = shared_from_this();
    auto resolved = co_await shared_.resolver->resolve(parts_.id, *wanted.name);
    if (!resolved) co_return "unresolved";
    if (std::ranges::find(resolved->addresses, wanted.address) == resolved->addresses.end())
        co_return "not-of-name";
    co_return std::nullopt;
}

awaitable<Result<Gateway::Socket>> Gateway::connect(net::Ipv4 address, std::uint16_t port) {
    GB_CO_TRY_ASSIGN(UniqueFd fd, parts_.socket());
    auto socket = std::make_shared<tcp::socket>(shared_.executor);
    boost::system::error_code ec;
    socket->assign(tcp::v4(), fd.get(), ec);
    if (ec) co_return fail(ErrorCode::internal, "socket: " + ec.message());
    (void)fd.release();
    asio::steady_timer timer(shared_.executor, kConnectLimit);
    timer.async_wait([socket](const boost::system::error_code& timer_ec) {
        boost::system::error_code ignored;
        if (!timer_ec) socket->cancel(ignored);
    });
    auto [connect_ec] = co_await socket->async_connect({asio_address(address), port}, kErrorTuple);
    timer.cancel();
    if (connect_ec)
        co_return fail(ErrorCode::unavailable,
                       fmt::format("unreachable: {} port {}", to_string(address), port));
    co_return socket;
}

awaitable<Result<Gateway::Socket>> Gateway::connect_proxy(net::ProxyAddress proxy, Wanted wanted) {
    const auto self = shared_from_this();
    std::vector<net::Ipv4> addresses{proxy.host.address};
    if (proxy.host.kind == net::Host::Kind::name) {
        GB_CO_TRY_ASSIGN(const Resolved resolved,
                         co_await shared_.resolver->resolve(parts_.id, proxy.host.name));
        addresses = resolved.addresses;
    }
    std::optional<std::string_view> name;
    if (proxy.host.kind == net::Host::Kind::name) name = proxy.host.name;
    std::erase_if(addresses, [&](net::Ipv4 address) {
        return !net::judge(net::open_policy(), shared_.ceiling, address, name).allowed();
    });
    if (addresses.empty() || stopped_)
        co_return fail(ErrorCode::permission_denied, "the egress proxy's address is closed");
    GB_CO_TRY_ASSIGN(Socket socket, co_await connect(addresses.front(), proxy.port));
    SocksTarget target = wanted.address;
    if (wanted.synthetic) target = *wanted.name;
    GB_CO_TRY(co_await socks5_connect(socket, proxy.username, proxy.password, std::move(target), wanted.port,
                                      kConnectLimit));
    co_return socket;
}

awaitable<Result<Gateway::Socket>> Gateway::dial(Wanted wanted) {
    if (stopped_) co_return fail(ErrorCode::canceled, "the sandbox has ended");
    if (policy_.proxy) co_return co_await connect_proxy(*policy_.proxy, std::move(wanted));
    co_return co_await connect(wanted.address, wanted.port);
}

awaitable<void> Gateway::carry(Socket guest, const Wanted& wanted, Plan chosen) {
    auto upstream = std::make_shared<Socket>();
    Entry entry(shared_from_this(), wanted, std::move(chosen), [guest, upstream] {
        reset(*guest);
        if (*upstream) reset(**upstream);
    });
    entry.allowed();
    auto dialled = co_await dial(wanted);
    if (!dialled || !guest->is_open()) {
        if (dialled) reset(**dialled);
        if (!dialled && !stopped_)
            log::debug("a connection of a sandbox failed",
                       {{"sandbox", parts_.id}, {"error", dialled.error().message}});
        co_return reset(*guest);
    }
    *upstream = *dialled;
    co_await tunnel(guest, *dialled, entry.counters());
}

SecretLookup Gateway::secrets_for(const Wanted& wanted) {
    return [weak = weak_from_this(), wanted](std::string_view name) -> Result<std::string> {
        const auto self = weak.lock();
        if (!self || self->stopped_) return fail(ErrorCode::canceled, "the sandbox has ended");
        auto value = self->parts_.secrets
                         ? self->parts_.secrets(name)
                         : Result<std::string>(fail(ErrorCode::not_found, "this server has no secrets"));
        if (!value) self->tell(net::Verdict::deny, wanted, "header-rule");
        return value;
    };
}

awaitable<void> Gateway::intercept(Socket guest, Wanted wanted, Plan chosen) {
    const auto self = shared_from_this();
    auto context = authority_ ? authority_->leaf(*wanted.name)
                              : Result<std::shared_ptr<SSL_CTX>>(fail(ErrorCode::internal, "no authority"));
    if (!context) co_return refuse(*guest, wanted, "header-rule");
    auto relay = std::make_shared<std::weak_ptr<HttpRelay>>();
    Entry entry(self, wanted, chosen, [guest, relay] {
        if (auto running = relay->lock())
            running->stop();
        else
            reset(*guest);
    });
    entry.allowed();
    auto stream = co_await http::accept_tls(std::move(*guest), *context, {}, kTlsLimit);
    if (!stream || stopped_) co_return;
    if (plan_for(wanted) != chosen) co_return (*stream)->close();
    RelayOptions options;
    options.counters = entry.counters();
    options.route = [self, wanted, headers = chosen.headers](std::string_view host) {
        return self->route_intercepted(wanted, headers, host);
    };
    auto running = std::make_shared<HttpRelay>(std::move(*stream), std::move(options));
    *relay = running;
    co_await running->run();
}

awaitable<Result<Route>> Gateway::route_intercepted(const Wanted& wanted,
                                                    std::vector<net::HeaderRule> headers,
                                                    std::string_view host) {
    auto authority = net::parse_authority(host);
    const bool same = authority && authority->host.kind == net::Host::Kind::name &&
                      authority->host.name == *wanted.name &&
                      authority->port.value_or(wanted.port) == wanted.port;
    if (!same) {
        tell(net::Verdict::deny, wanted, authority ? "not-of-name" : "invalid-name");
        co_return fail(ErrorCode::permission_denied,
                       "not-of-name: the request is for another host than the connection");
    }
    Route route;
    route.key = *wanted.name;
    route.rules = std::move(headers);
    route.secrets = secrets_for(wanted);
    route.open = [self = shared_from_this(), wanted]() -> awaitable<Result<std::shared_ptr<http::Stream>>> {
        GB_CO_TRY_ASSIGN(Socket socket, co_await self->dial(wanted));
        auto stream = co_await self->shared_.tls->connect(std::move(*socket), *wanted.name, kTlsLimit);
        if (!stream) self->tell(net::Verdict::deny, wanted, "upstream-tls");
        co_return stream;
    };
    co_return route;
}

awaitable<void> Gateway::serve_http(Socket guest, Wanted wanted) {
    const auto self = shared_from_this();
    auto stream = std::make_shared<http::TcpStream>(std::move(*guest));
    auto relay = std::make_shared<std::weak_ptr<HttpRelay>>();
    // What it is for is not known yet: until then it is one without a name.
    Entry entry(self, wanted, plan_for(wanted), [relay, stream] {
        if (auto running = relay->lock())
            running->stop();
        else
            stream->close();
    });
    RelayOptions options;
    options.counters = entry.counters();
    options.route = [&](std::string_view host) { return route_plain(wanted, entry, host); };
    auto running = std::make_shared<HttpRelay>(stream, std::move(options));
    *relay = running;
    co_await running->run();
    // No request that named a host: another protocol, a head that can be read in two ways, or nothing at all.
    if (!entry.live().told && !entry.live().denied) tell(net::Verdict::deny, wanted, "no-name");
}

// The frames of `wanted` and `entry` outlive the relay's run, which awaits this.
awaitable<Result<Route>> Gateway::route_plain(Wanted& connection, Entry& entry, std::string_view host) {
    const auto self = shared_from_this();
    Wanted wanted = connection;
    auto denied = [&](std::string rule) {
        entry.live().denied = true;
        tell(net::Verdict::deny, wanted, rule);
        return fail(ErrorCode::permission_denied,
                    rule + ": the network rules of this sandbox do not allow it");
    };
    auto authority = net::parse_authority(host);
    if (!authority) co_return denied("invalid-name");
    if (authority->port.value_or(wanted.port) != wanted.port) co_return denied("not-of-name");
    if (authority->host.kind == net::Host::Kind::name) {
        if (wanted.synthetic && wanted.name != authority->host.name) co_return denied("not-of-name");
        wanted.name = authority->host.name;
    } else if (authority->host.kind == net::Host::Kind::ipv6 || authority->host.address != wanted.address) {
        co_return denied("not-of-name");
    }
    Plan chosen = plan_for(wanted);
    if (chosen.way == Way::refuse) co_return denied(chosen.rule);
    // Whoever listens on the way would have it.
    if (!secret_names(chosen.headers).empty()) co_return denied("header-rule");
    if (auto why = co_await doubt(wanted, chosen)) co_return denied(*why);
    if (stopped_ || plan_for(wanted) != chosen) co_return denied("by-name");
    entry.becomes(wanted, chosen);
    Route route;
    route.key = fmt::format("{} {}", to_string(wanted.address), wanted.name.value_or(""));
    route.rules = chosen.headers;
    route.secrets = secrets_for(wanted);
    route.open = [self, wanted]() -> awaitable<Result<std::shared_ptr<http::Stream>>> {
        GB_CO_TRY_ASSIGN(Socket socket, co_await self->dial(wanted));
        co_return std::make_shared<http::TcpStream>(std::move(*socket));
    };
    co_return route;
}

}  // namespace gb::egress
