// SPDX-License-Identifier: Apache-2.0
// For the tests of this folder: messages made field by field, right or wrong; what ldns makes of ours; a DNS
// server on the loopback that does as a test says.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "base/error_tuple.h"
#include "egress/dns_message.h"
#include "egress/dns_wire.h"
#include "egress/ldns.h"
#include "egress/resolver.h"
#include "egress/upstream.h"

namespace gb::egress::testing {

using asio::ip::tcp;
using asio::ip::udp;
using namespace std::string_literals;

struct Counts {
    std::uint16_t questions = 1, answers = 0, authorities = 0, additionals = 0;
};

inline std::string name_bytes(std::string_view text) {
    std::string out;
    wire::put_name(out, text);
    return out;
}

inline std::string a_rdata(std::string_view address) {
    std::string out;
    wire::put_u32(out, net::parse_ipv4(address).value().value);
    return out;
}

class Message {
  public:
    Message(std::uint16_t id, std::uint16_t flags, Counts counts) {
        wire::put_header(
            bytes_, {id, flags, counts.questions, counts.answers, counts.authorities, counts.additionals});
    }
    Message& raw(std::string_view bytes) {
        bytes_ += bytes;
        return *this;
    }
    Message& question(std::string_view name, DnsType type, std::uint16_t dns_class = 1) {
        return raw_question(name_bytes(name), type, dns_class);
    }
    Message& raw_question(std::string_view name, DnsType type, std::uint16_t dns_class = 1) {
        bytes_ += name;
        wire::put_u16(bytes_, static_cast<std::uint16_t>(type));
        wire::put_u16(bytes_, dns_class);
        return *this;
    }
    Message& raw_record(std::string_view owner, DnsType type, std::uint32_t ttl_s, std::string_view rdata,
                        std::uint16_t dns_class = 1) {
        raw_question(owner, type, dns_class);
        wire::put_u32(bytes_, ttl_s);
        wire::put_u16(bytes_, static_cast<std::uint16_t>(rdata.size()));
        bytes_ += rdata;
        return *this;
    }
    Message& record(std::string_view owner, DnsType type, std::uint32_t ttl_s, std::string_view rdata) {
        return raw_record(name_bytes(owner), type, ttl_s, rdata);
    }
    Message& opt(std::uint16_t payload, std::uint32_t flags = 0, std::string_view options = {}) {
        return raw_record("\0"s, DnsType::opt, flags, options, payload);
    }
    [[nodiscard]] std::string str() const { return bytes_; }

  private:
    std::string bytes_;
};

// An answer to a query that make_query() made: the same id and question.
inline Message answer_to(const std::string& query, std::uint16_t answers, std::uint16_t rcode = 0) {
    wire::Reader reader(query);
    const auto header = *reader.header();
    (void)*reader.name();
    Message out(header.id, static_cast<std::uint16_t>(0x8180 | rcode), {.answers = answers});
    out.raw(query.substr(wire::kHeaderSize, reader.position() + 4 - wire::kHeaderSize));
    return out;
}
inline std::string name_asked(const std::string& query) {
    wire::Reader reader(query);
    (void)*reader.header();
    return *reader.name()->text;
}

// The message as ldns understands it: "NOERROR qr tc rd ra; question; answer; answer", without the dots at
// the ends of names. "unreadable" if it does not.
inline std::string describe(std::string_view bytes) {
    ldns_pkt* packet = nullptr;
    if (ldns_wire2pkt(&packet, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()) !=
        LDNS_STATUS_OK)
        return "unreadable";
    auto owned = [](char* text) {
        std::string out(text);
        free(text);
        return out;
    };
    std::string out = owned(ldns_pkt_rcode2str(ldns_pkt_get_rcode(packet)));
    if (ldns_pkt_qr(packet)) out += " qr";
    if (ldns_pkt_aa(packet)) out += " aa";
    if (ldns_pkt_tc(packet)) out += " tc";
    if (ldns_pkt_rd(packet)) out += " rd";
    if (ldns_pkt_ra(packet)) out += " ra";
    if (ldns_pkt_ad(packet)) out += " ad";
    for (ldns_rr_list* list : {ldns_pkt_question(packet), ldns_pkt_answer(packet), ldns_pkt_authority(packet),
                               ldns_pkt_additional(packet)}) {
        for (std::size_t i = 0; i < ldns_rr_list_rr_count(list); ++i) {
            std::string record = owned(ldns_rr2str(ldns_rr_list_rr(list, i)));
            for (char& c : record)
                if (c == '\t' || c == '\n') c = ' ';
            while (record.ends_with(' ')) record.pop_back();
            out += "; " + record;
        }
    }
    if (ldns_pkt_edns(packet))
        out += "; edns " + std::to_string(ldns_pkt_edns_udp_size(packet)) + " " +
               std::to_string(ldns_pkt_edns_extended_rcode(packet));
    ldns_pkt_free(packet);
    return out;
}

// Runs the loop until the coroutine has ended.
template <class T>
T run(asio::io_context& io, awaitable<T> what) {
    std::optional<T> out;
    asio::co_spawn(io, std::move(what), [&](const std::exception_ptr& failure, T value) {
        if (failure) std::rethrow_exception(failure);
        out = std::move(value);
    });
    io.restart();
    while (!out && io.run_one_for(std::chrono::seconds(30)) != 0) {
    }
    return std::move(out).value();
}

// UDP and TCP on one port of the loopback. The script says what is sent back for a query: several messages,
// or none.
class FakeDns {
  public:
    struct Asked {
        std::string query;
        bool tcp = false;
        udp::endpoint client;  // UDP only
    };
    using Script = std::function<std::vector<std::string>(const Asked&)>;

    FakeDns(asio::io_context& io, Script script) : core_(std::make_shared<Core>(io, std::move(script))) {
        for (int attempt = 0; attempt < 50 && !core_->bind(); ++attempt) {
        }
        asio::co_spawn(io, udp_loop(core_), asio::detached);
        asio::co_spawn(io, tcp_loop(core_), asio::detached);
    }
    ~FakeDns() {
        core_->udp_socket.close();
        core_->acceptor.close();
    }
    [[nodiscard]] DnsEndpoint endpoint() const {
        return {net::Ipv4{0x7f000001}, core_->udp_socket.local_endpoint().port()};
    }
    [[nodiscard]] int udp_queries() const { return core_->udp_queries; }
    [[nodiscard]] int tcp_queries() const { return core_->tcp_queries; }
    udp::socket& udp_socket() { return core_->udp_socket; }

  private:
    struct Core {
        Core(asio::io_context& io, Script s) : udp_socket(io), acceptor(io), script(std::move(s)) {}
        bool bind() {
            const auto loopback = asio::ip::address_v4::loopback();
            udp_socket = udp::socket(udp_socket.get_executor(), udp::endpoint(loopback, 0));
            acceptor = tcp::acceptor(acceptor.get_executor(), tcp::v4());
            boost::system::error_code ec;
            acceptor.bind({loopback, udp_socket.local_endpoint().port()}, ec);
            if (!ec) acceptor.listen();
            return !ec;
        }
        udp::socket udp_socket;
        tcp::acceptor acceptor;
        Script script;
        int udp_queries = 0, tcp_queries = 0;
    };
    static awaitable<void> udp_loop(std::shared_ptr<Core> core) {
        std::string room(65535, '\0');
        for (;;) {
            udp::endpoint client;
            auto [ec, size] =
                co_await core->udp_socket.async_receive_from(asio::buffer(room), client, kErrorTuple);
            if (ec) co_return;
            ++core->udp_queries;
            for (const std::string& reply : core->script({room.substr(0, size), false, client}))
                co_await core->udp_socket.async_send_to(asio::buffer(reply), client, kErrorTuple);
        }
    }
    static awaitable<void> tcp_loop(std::shared_ptr<Core> core) {
        for (;;) {
            auto [ec, socket] = co_await core->acceptor.async_accept(kErrorTuple);
            if (ec) co_return;
            asio::co_spawn(core->acceptor.get_executor(), serve(core, std::move(socket)), asio::detached);
        }
    }
    static awaitable<void> serve(std::shared_ptr<Core> core, tcp::socket socket) {
        std::string head(2, '\0');
        if (auto [ec, n] = co_await asio::async_read(socket, asio::buffer(head), kErrorTuple); ec) co_return;
        std::string query(*wire::Reader(head).u16(), '\0');
        if (auto [ec, n] = co_await asio::async_read(socket, asio::buffer(query), kErrorTuple); ec) co_return;
        ++core->tcp_queries;
        const auto replies = core->script({query, true, {}});
        for (const std::string& reply : replies) {
            std::string framed;
            wire::put_u16(framed, static_cast<std::uint16_t>(reply.size()));
            framed += reply;
            co_await asio::async_write(socket, asio::buffer(framed), kErrorTuple);
        }
        if (!replies.empty()) co_return;
        co_await socket.async_wait(tcp::socket::wait_read, kErrorTuple);  // silent until the client goes
    }
    std::shared_ptr<Core> core_;
};

// A resolver that asks a server which does as `script_` says, under a clock that the test moves.
class ResolverFixture : public ::testing::Test {
  protected:
    void SetUp() override {
        server_ = std::make_unique<FakeDns>(
            io_, [this](const FakeDns::Asked& asked) { return std::vector{script_(asked.query)}; });
        upstream_ =
            std::make_shared<Upstream>(io_.get_executor(), UpstreamOptions{.servers = {server_->endpoint()}});
        make({});
    }
    void TearDown() override {
        resolver_.reset();
        upstream_.reset();
        server_.reset();
        io_.restart();
        io_.poll();
    }
    void make(ResolverOptions options) {
        options.clock = [this] { return now_ms_; };
        resolver_ = std::make_shared<Resolver>(upstream_, options);
    }

    asio::io_context io_;
    std::int64_t now_ms_ = 1'000'000;
    std::function<std::string(const std::string& query)> script_;
    std::unique_ptr<FakeDns> server_;
    std::shared_ptr<Upstream> upstream_;
    std::shared_ptr<Resolver> resolver_;
};

}  // namespace gb::egress::testing
