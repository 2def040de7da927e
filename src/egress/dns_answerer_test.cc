// SPDX-License-Identifier: Apache-2.0
#include "egress/dns_answerer.h"

#include <gtest/gtest.h>

#include "egress/dns_testing.h"

namespace gb::egress {
namespace {

using namespace testing;

bool not_private(net::Ipv4 address) {
    return address.value >> 24 != 10 && address.value >> 24 != 127;
}

class AnswererTest : public ResolverFixture {
  protected:
    DnsReply reply(const std::string& name, DnsType type) {
        query_ = parse_query(make_query(7, {name, type}, false)).value();
        return run(io_, answer_from(resolver_, "sandbox", query_, not_private, pins_));
    }
    std::string described(const std::string& name, DnsType type) {
        const DnsReply got = reply(name, type);
        return describe(encode(query_, got, Transport::udp)) + (got.filtered ? " filtered" : "") +
               (got.failure ? " failure" : "");
    }
    // For every name: one alias, these addresses.
    void leads_to(std::vector<std::string> addresses) {
        script_ = [addresses](const std::string& query) {
            auto m = answer_to(query, static_cast<std::uint16_t>(1 + addresses.size()));
            m.raw_record("\xc0\x0c"s, DnsType::cname, 100, name_bytes("x.net"));
            for (const auto& address : addresses) m.record("x.net", DnsType::a, 60, a_rdata(address));
            return m.str();
        };
    }

    DnsQuery query_;
    std::shared_ptr<Pins> pins_ = std::make_shared<Pins>();
};

TEST_F(AnswererTest, OpenAddressesAreToldAndPinned) {
    leads_to({"1.2.3.4", "10.0.0.1", "5.6.7.8"});
    EXPECT_EQ(described("a.com", DnsType::a),
              "NOERROR qr rd ra; a.com. IN A; a.com. 60 IN CNAME x.net.; x.net. 60 IN A 1.2.3.4; "
              "x.net. 60 IN A 5.6.7.8");
    EXPECT_TRUE(pins_->was_told("a.com", {0x01020304}, now_ms_));
    EXPECT_TRUE(pins_->was_told("a.com", {0x05060708}, now_ms_));
    EXPECT_FALSE(pins_->was_told("a.com", {0x0a000001}, now_ms_));
    EXPECT_FALSE(pins_->was_told("x.net", {0x01020304}, now_ms_));

    now_ms_ += 20'500;  // from the cache, with the time that is left
    EXPECT_TRUE(described("a.com", DnsType::a).ends_with("x.net. 40 IN A 5.6.7.8"));
    EXPECT_EQ(server_->udp_queries(), 1);
    pins_.reset();
    EXPECT_TRUE(described("a.com", DnsType::a).starts_with("NOERROR"));
}

TEST_F(AnswererTest, PrivateAddressesAloneAreNoName) {
    leads_to({"10.0.0.1", "127.0.0.1"});
    EXPECT_EQ(described("a.com", DnsType::a), "NXDOMAIN qr rd ra; a.com. IN A filtered");
    EXPECT_EQ(pins_->names(), 0U);
}

TEST_F(AnswererTest, NoAddressesAreNotFiltered) {
    leads_to({});
    EXPECT_EQ(described("a.com", DnsType::a), "NOERROR qr rd ra; a.com. IN A; a.com. 5 IN CNAME x.net.");
    script_ = [](const std::string& query) { return answer_to(query, 0, 3).str(); };
    EXPECT_EQ(described("b.com", DnsType::a), "NXDOMAIN qr rd ra; b.com. IN A");
    EXPECT_EQ(described("b.com", DnsType::txt), "NXDOMAIN qr rd ra; b.com. IN TXT");
}

TEST_F(AnswererTest, OtherTypes) {
    script_ = [](const std::string& query) {
        return answer_to(query, 1).raw_record("\xc0\x0c"s, DnsType::mx, 60, "\0\x0a\1m\xc0\x0c"s).str();
    };
    EXPECT_EQ(described("a.com", DnsType::mx), "NOERROR qr rd ra; a.com. IN MX; a.com. 60 IN MX 10 m.a.com.");
    const int asked = server_->udp_queries();
    for (DnsType type : {DnsType::aaaa, DnsType::https, DnsType::svcb}) {
        const DnsReply got = reply("a.com", type);
        EXPECT_EQ(got.rcode, Rcode::no_error);
        EXPECT_EQ(got.records, DnsRecords{});
    }
    for (DnsType type : {DnsType::any, DnsType::axfr, DnsType::ixfr, DnsType{10}})
        EXPECT_EQ(reply("a.com", type).rcode, Rcode::refused);
    EXPECT_EQ(server_->udp_queries(), asked);  // none of these left the machine
}

TEST_F(AnswererTest, FailuresAreFailures) {
    script_ = [](const std::string& query) { return answer_to(query, 0, 2).str(); };
    EXPECT_EQ(described("a.com", DnsType::a), "SERVFAIL qr rd ra; a.com. IN A failure");
    EXPECT_EQ(described("a.com", DnsType::txt), "SERVFAIL qr rd ra; a.com. IN TXT failure");
    upstream_->stop();
    EXPECT_EQ(reply("a.com", DnsType::a).failure->code, ErrorCode::canceled);
}

}  // namespace
}  // namespace gb::egress
