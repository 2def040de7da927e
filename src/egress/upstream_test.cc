// SPDX-License-Identifier: Apache-2.0
#include "egress/upstream.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "egress/dns_testing.h"

namespace gb::egress {
namespace {

using namespace testing;
using std::chrono::milliseconds;

const DnsQuestion kQuestion{"www.example.com", DnsType::a};

std::string addressed(const std::string& query, std::string_view address) {
    return answer_to(query, 1).raw_record("\xc0\x0c"s, DnsType::a, 60, a_rdata(address)).str();
}
FakeDns::Script says(std::string address) {
    return [address](const FakeDns::Asked& asked) { return std::vector{addressed(asked.query, address)}; };
}
FakeDns::Script silent() {
    return [](const FakeDns::Asked&) { return std::vector<std::string>(); };
}
FakeDns::Script fails(std::uint16_t rcode) {
    return
        [rcode](const FakeDns::Asked& asked) { return std::vector{answer_to(asked.query, 0, rcode).str()}; };
}

class UpstreamTest : public ::testing::Test {
  protected:
    void servers(std::initializer_list<FakeDns::Script> scripts) {
        for (const auto& script : scripts) {
            servers_.push_back(std::make_unique<FakeDns>(io_, script));
            options_.servers.push_back(servers_.back()->endpoint());
        }
    }
    Upstream& upstream() {
        if (!upstream_) upstream_ = std::make_unique<Upstream>(io_.get_executor(), options_);
        return *upstream_;
    }
    Result<DnsAnswer> ask(const DnsQuestion& question = kQuestion) {
        return run(io_, upstream().ask("sandbox", question));
    }
    // The one address of the answer, or the error.
    std::string asked(const DnsQuestion& question = kQuestion) {
        const auto answer = ask(question);
        if (!answer) return answer.error().message;
        if (answer->records.addresses.size() != 1) return "no single address";
        return net::to_string(answer->records.addresses[0].address);
    }
    ErrorCode error(const DnsQuestion& question = kQuestion) {
        const auto answer = ask(question);
        return answer ? ErrorCode::unknown : answer.error().code;
    }
    void TearDown() override {
        upstream_.reset();
        servers_.clear();
        io_.restart();
        io_.poll();
    }

    asio::io_context io_;
    std::vector<std::unique_ptr<FakeDns>> servers_;
    UpstreamOptions options_{.per_server = milliseconds(150), .total = milliseconds(800)};
    std::unique_ptr<Upstream> upstream_;
};

TEST_F(UpstreamTest, AnswersOverUdp) {
    servers({says("1.2.3.4")});
    EXPECT_EQ(asked(), "1.2.3.4");
    EXPECT_EQ(servers_[0]->tcp_queries(), 0);
    EXPECT_EQ(asked(), "1.2.3.4");
    EXPECT_EQ(servers_[0]->udp_queries(), 2);  // nothing is kept here
}

TEST_F(UpstreamTest, EveryQuestionHasItsOwnPortAndId) {
    std::set<int> ports, ids;
    servers({[&](const FakeDns::Asked& asked) {
        ports.insert(asked.client.port());
        ids.insert(wire::Reader(asked.query).header()->id);
        return std::vector{addressed(asked.query, "1.2.3.4")};
    }});
    for (int i = 0; i < 8; ++i) EXPECT_EQ(asked(), "1.2.3.4");
    // By chance two may be the same.
    EXPECT_GE(ports.size(), 6U);
    EXPECT_GE(ids.size(), 6U);
}

TEST_F(UpstreamTest, NoSuchNameIsAnAnswer) {
    servers({fails(3), says("1.2.3.4")});
    EXPECT_EQ(ask().value().rcode, Rcode::name_error);
    EXPECT_EQ(servers_[1]->udp_queries(), 0);
}

TEST_F(UpstreamTest, TruncatedAnswersAreAskedForOverTcp) {
    servers({[](const FakeDns::Asked& asked) {
        if (asked.tcp) return std::vector{addressed(asked.query, "1.2.3.4")};
        std::string cut = answer_to(asked.query, 1).str();
        cut[2] |= 2;
        return std::vector{cut};
    }});
    EXPECT_EQ(asked(), "1.2.3.4");
    EXPECT_EQ(servers_[0]->tcp_queries(), 1);
}

TEST_F(UpstreamTest, MessagesOfOthersArePassedOver) {
    servers({[](const FakeDns::Asked& asked) {
        const std::string good = addressed(asked.query, "1.2.3.4");
        std::string wrong_id = addressed(asked.query, "6.6.6.6"), no_answer = wrong_id;
        wrong_id[0] = static_cast<char>(wrong_id[0] ^ 1);
        no_answer[2] = 1;
        const std::string other = addressed(
            make_query(wire::Reader(asked.query).header()->id, {"other.example.com", DnsType::a}, false),
            "6.6.6.6");
        return std::vector{""s, "garbage"s, wrong_id, no_answer, other, std::string(5000, 'x'), good};
    }});
    EXPECT_EQ(asked(), "1.2.3.4");
}

TEST_F(UpstreamTest, WhatComesFromElsewhereIsNotReceived) {
    udp::socket stranger(io_, udp::endpoint(asio::ip::address_v4::loopback(), 0));
    servers({[&](const FakeDns::Asked& asked) {
        stranger.send_to(asio::buffer(addressed(asked.query, "6.6.6.6")), asked.client);
        return std::vector{addressed(asked.query, "1.2.3.4")};
    }});
    EXPECT_EQ(asked(), "1.2.3.4");
}

TEST_F(UpstreamTest, ManyGuessesLeadToTcp) {
    servers({[](const FakeDns::Asked& asked) {
        if (asked.tcp) return std::vector{addressed(asked.query, "1.2.3.4")};
        std::string guess = addressed(asked.query, "6.6.6.6");
        guess[0] = static_cast<char>(guess[0] ^ 1);
        std::vector<std::string> out(40, guess);
        out.push_back(addressed(asked.query, "6.6.6.6"));  // the lucky one comes too late
        return out;
    }});
    EXPECT_EQ(asked(), "1.2.3.4");
}

TEST_F(UpstreamTest, TheNextServerIsAskedAndRemembered) {
    servers({silent(), fails(2), fails(5), says("1.2.3.4")});
    EXPECT_EQ(asked(), "1.2.3.4");
    EXPECT_EQ(servers_[0]->udp_queries(), 1);
    EXPECT_EQ(asked(), "1.2.3.4");
    EXPECT_EQ(servers_[0]->udp_queries(), 1);
    EXPECT_EQ(servers_[3]->udp_queries(), 2);
}

TEST_F(UpstreamTest, ALateAnswerIsNotTaken) {
    std::string late;
    servers(
        {[&](const FakeDns::Asked& asked) {
             late = addressed(asked.query, "6.6.6.6");
             return std::vector<std::string>();
         },
         [&](const FakeDns::Asked& asked) { return std::vector{late, addressed(asked.query, "1.2.3.4")}; }});
    EXPECT_EQ(asked(), "1.2.3.4");
}

TEST_F(UpstreamTest, BrokenAnswersAreFailuresOfTheServer) {
    servers({[](const FakeDns::Asked& asked) {  // an alias of itself
                 return std::vector{
                     answer_to(asked.query, 1)
                         .raw_record("\xc0\x0c"s, DnsType::cname, 60, name_bytes(name_asked(asked.query)))
                         .str()};
             },
             says("1.2.3.4")});
    EXPECT_EQ(asked(), "1.2.3.4");
    options_.servers.resize(1);
    upstream_.reset();
    EXPECT_EQ(error(), ErrorCode::unavailable);
}

TEST_F(UpstreamTest, ServersWithoutEdnsAreAskedWithoutIt) {
    servers({[](const FakeDns::Asked& asked) {
        const auto header = *wire::Reader(asked.query).header();
        if (header.additionals == 0) return std::vector{addressed(asked.query, "1.2.3.4")};
        return std::vector{Message(header.id, 0x8181, {.questions = 0}).str()};
    }});
    EXPECT_EQ(asked(), "1.2.3.4");
    EXPECT_EQ(servers_[0]->udp_queries(), 2);
}

TEST_F(UpstreamTest, ALostPacketIsSentAgain) {
    int count = 0;
    servers({[&](const FakeDns::Asked& asked) {
        return ++count == 1 ? std::vector<std::string>() : std::vector{addressed(asked.query, "1.2.3.4")};
    }});
    EXPECT_EQ(asked(), "1.2.3.4");
}

TEST_F(UpstreamTest, NobodyAnswers) {
    servers({silent(), silent()});
    EXPECT_EQ(error(), ErrorCode::deadline_exceeded);
    options_.servers.clear();
    upstream_.reset();
    EXPECT_EQ(error(), ErrorCode::unavailable);  // none is configured
}

TEST_F(UpstreamTest, NobodyListens) {
    {
        FakeDns gone(io_, silent());
        options_.servers.push_back(gone.endpoint());
    }
    EXPECT_EQ(error(), ErrorCode::unavailable);
}

TEST_F(UpstreamTest, TcpThatDoesNotAnswer) {
    servers({[](const FakeDns::Asked& asked) {
        if (asked.tcp) return std::vector<std::string>();
        std::string cut = answer_to(asked.query, 0).str();
        cut[2] |= 2;
        return std::vector{cut};
    }});
    EXPECT_EQ(error(), ErrorCode::deadline_exceeded);
    EXPECT_GE(servers_[0]->tcp_queries(), 1);
}

TEST_F(UpstreamTest, TcpWithRubbish) {
    for (const std::string& rubbish : {""s, "x"s, std::string(60'000, 'x')}) {
        servers({[rubbish](const FakeDns::Asked& asked) {
            if (asked.tcp) return std::vector{rubbish};
            std::string cut = answer_to(asked.query, 0).str();
            cut[2] |= 2;
            return std::vector{cut};
        }});
        options_.servers = {servers_.back()->endpoint()};
        upstream_.reset();
        EXPECT_EQ(error(), ErrorCode::unavailable);
    }
}

TEST_F(UpstreamTest, WhatIsNoQuestionIsNotAsked) {
    servers({says("1.2.3.4")});
    EXPECT_EQ(error({"", DnsType::a}), ErrorCode::invalid_argument);
    EXPECT_EQ(error({"A.com", DnsType::a}), ErrorCode::invalid_argument);
    EXPECT_EQ(error({"a b", DnsType::a}), ErrorCode::invalid_argument);
    EXPECT_EQ(error({"a", DnsType::any}), ErrorCode::invalid_argument);
    EXPECT_EQ(error({"a", DnsType::aaaa}), ErrorCode::invalid_argument);
    EXPECT_EQ(servers_[0]->udp_queries(), 0);
    EXPECT_TRUE(ask({"", DnsType::ns}));
}

// Asks together; the results in order.
class Together {
  public:
    explicit Together(asio::io_context& io) : io_(io) {}
    void ask(Upstream& upstream, const std::string& owner, const DnsQuestion& question) {
        const std::size_t index = results_.size();
        results_.emplace_back();
        asio::co_spawn(io_, upstream.ask(owner, question),
                       [this, index](const std::exception_ptr&, Result<DnsAnswer> result) {
                           results_[index] = std::move(result);
                           ++done_;
                       });
    }
    std::vector<std::optional<Result<DnsAnswer>>>& wait() {
        io_.restart();
        while (done_ < results_.size() && io_.run_one_for(std::chrono::seconds(30)) != 0) {
        }
        return results_;
    }
    std::size_t count(ErrorCode code) {
        return static_cast<std::size_t>(std::count_if(
            results_.begin(), results_.end(),
            [&](const auto& result) { return result && !*result && result->error().code == code; }));
    }
    std::size_t answered() {
        return static_cast<std::size_t>(
            std::count_if(results_.begin(), results_.end(),
                          [&](const auto& result) { return result && result->has_value(); }));
    }

  private:
    asio::io_context& io_;
    std::vector<std::optional<Result<DnsAnswer>>> results_;
    std::size_t done_ = 0;
};

TEST_F(UpstreamTest, TheSameQuestionIsAskedOnce) {
    servers({says("1.2.3.4")});
    Together together(io_);
    for (int i = 0; i < 20; ++i) together.ask(upstream(), "s" + std::to_string(i % 3), kQuestion);
    together.ask(upstream(), "s", {"www.example.com", DnsType::mx});
    together.wait();
    EXPECT_EQ(together.answered(), 21U);
    EXPECT_EQ(servers_[0]->udp_queries(), 2);
}

TEST_F(UpstreamTest, AnOwnerHasItsShareAndAllHaveALimit) {
    options_.max_per_owner = 3;
    options_.max_questions = 5;
    servers({says("1.2.3.4")});
    for (int again = 0; again < 2; ++again) {  // all places are given back
        Together together(io_);
        for (int i = 0; i < 4; ++i) together.ask(upstream(), "a", {"a" + std::to_string(i), DnsType::a});
        for (int i = 0; i < 3; ++i) together.ask(upstream(), "b", {"b" + std::to_string(i), DnsType::a});
        together.ask(upstream(), "c", {"a0", DnsType::a});  // shares one that is under way
        auto& results = together.wait();
        EXPECT_EQ(together.answered(), 6U);
        EXPECT_EQ(together.count(ErrorCode::resource_exhausted), 2U);
        EXPECT_FALSE(results[3]->has_value());  // the fourth of a
        EXPECT_FALSE(results[6]->has_value());  // the sixth of all
    }
}

TEST_F(UpstreamTest, StopEndsWhatIsUnderWay) {
    servers({silent()});
    options_.per_server = options_.total = std::chrono::minutes(10);
    Together together(io_);
    together.ask(upstream(), "a", kQuestion);
    io_.restart();
    while (servers_[0]->udp_queries() == 0) io_.run_one();
    upstream_.reset();
    together.wait();
    EXPECT_EQ(together.count(ErrorCode::canceled), 1U);
}

TEST(ResolvConf, NameserverLines) {
    EXPECT_EQ(upstreams_of_resolv_conf("# nameserver 9.9.9.9\n"
                                       "search example.com\n"
                                       "nameserver 1.1.1.1\r\n"
                                       "nameserver\t 8.8.8.8 # the other\n"
                                       "nameserver fe80::1%eth0\n"
                                       "nameserver2 4.4.4.4\nnameserver\nnameserver \n"
                                       " nameserver 5.5.5.5\n"
                                       "options edns0\n"
                                       "nameserver 127.0.0.53"),
              (std::vector<DnsEndpoint>{{{0x01010101}}, {{0x08080808}}, {{0x7f000035}}}));
    EXPECT_TRUE(upstreams_of_resolv_conf("").empty());
}

}  // namespace
}  // namespace gb::egress
