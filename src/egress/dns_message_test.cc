// SPDX-License-Identifier: Apache-2.0
#include "egress/dns_message.h"

#include <gtest/gtest.h>

#include "egress/dns_testing.h"

namespace gb::egress {
namespace {

using namespace testing;

constexpr std::uint16_t kRd = 0x0100;

std::string simple(std::string_view name, DnsType type) {
    return Message(7, kRd, {}).question(name, type).str();
}

DnsQuery query_for(std::string_view name, DnsType type, std::optional<std::uint16_t> payload = std::nullopt) {
    Message message(7, kRd, {.additionals = static_cast<std::uint16_t>(payload ? 1 : 0)});
    message.question(name, type);
    if (payload) message.opt(*payload);
    return parse_query(message.str()).value();
}

TEST(DnsQuery, OrdinaryOnesAreUnderstood) {
    const auto query = parse_query(Message(0xabcd, kRd, {.additionals = 1})
                                       .raw_question("\3WwW\x07"
                                                     "eXample\3com\0"s,
                                                     DnsType::a)
                                       .opt(4096, 0x8000,
                                            "\0\x0a\0\x08"
                                            "cookie12"s)
                                       .str());
    ASSERT_TRUE(query);
    EXPECT_EQ(query->id, 0xabcd);
    EXPECT_TRUE(query->recursion_desired);
    EXPECT_EQ(query->question, (DnsQuestion{"www.example.com", DnsType::a}));
    EXPECT_EQ(query->raw_question,
              "\3WwW\x07"
              "eXample\3com\0\0\1\0\1"s);
    EXPECT_EQ(query->edns_payload, 4096);

    const auto plain = parse_query(simple("_dmarc.a-b.x1", DnsType::txt));
    ASSERT_TRUE(plain);
    EXPECT_EQ(plain->question.name, "_dmarc.a-b.x1");
    EXPECT_FALSE(plain->edns_payload);
    // What dig sets: authentic data wanted.
    EXPECT_TRUE(parse_query(Message(1, kRd | 0x0020, {}).question("a", DnsType::a).str()));
    EXPECT_TRUE(parse_query(simple("", DnsType::ns)));
    const std::string longest = std::string(63, 'a') + "." + std::string(63, 'b') + "." +
                                std::string(63, 'c') + "." + std::string(61, 'd');
    ASSERT_TRUE(parse_query(simple(longest, DnsType::a)));
    EXPECT_EQ(parse_query(simple(longest, DnsType::a))->question.name, longest);
}

TEST(DnsQuery, OddOnesAreAnsweredWithoutBeingJudged) {
    const std::string loop = "\xc0\x0c"s;
    const struct {
        const char* what;
        std::string message;
        std::string reply;  // as describe()
    } cases[] = {
        {"empty", "", ""},
        {"half a header", std::string("\0\1\1\0\0", 5), ""},
        {"an answer", Message(7, 0x8180, {}).question("a", DnsType::a).str(), ""},
        {"no question", Message(7, kRd, {.questions = 0}).str(), "FORMERR qr rd ra"},
        {"two questions",
         Message(7, kRd, {.questions = 2}).question("a", DnsType::a).question("b", DnsType::a).str(),
         "FORMERR qr rd ra"},
        {"opcode UPDATE", Message(7, 5 << 11, {}).question("a", DnsType::a).str(), "NOTIMPL qr ra"},
        {"opcode NOTIFY", Message(7, 4 << 11, {}).question("a", DnsType::a).str(), "NOTIMPL qr ra"},
        {"an answer record",
         Message(7, kRd, {.answers = 1}).question("a", DnsType::a).record("a", DnsType::a, 1, "1234").str(),
         "FORMERR qr rd ra"},
        {"an authority",
         Message(7, kRd, {.authorities = 1})
             .question("a", DnsType::a)
             .record("a", DnsType::a, 1, "1234")
             .str(),
         "FORMERR qr rd ra"},
        {"two OPTs", Message(7, kRd, {.additionals = 2}).question("a", DnsType::a).opt(512).opt(512).str(),
         "FORMERR qr rd ra"},
        {"an additional that is no OPT",
         Message(7, kRd, {.additionals = 1})
             .question("a", DnsType::a)
             .record("a", DnsType::a, 1, "1234")
             .str(),
         "FORMERR qr rd ra; a. IN A"},
        {"an OPT with a name",
         Message(7, kRd, {.additionals = 1}).question("a", DnsType::a).record("a", DnsType::opt, 0, "").str(),
         "FORMERR qr rd ra; a. IN A"},
        {"an OPT that is cut off",
         Message(7, kRd, {.additionals = 1})
             .question("a", DnsType::a)
             .raw("\0\0\x29\2\0\0\0\0\0\0\4x"s)
             .str(),
         "FORMERR qr rd ra; a. IN A"},
        {"EDNS version 1",
         Message(7, kRd, {.additionals = 1}).question("a", DnsType::a).opt(512, 1 << 16).str(),
         "NOERROR qr rd ra; a. IN A; edns 1232 1"},
        {"bytes behind the end", simple("a", DnsType::a) + "x", "FORMERR qr rd ra; a. IN A"},
        {"the flag of a cut message", Message(7, kRd | 0x0200, {}).question("a", DnsType::a).str(),
         "FORMERR qr rd ra"},
        {"a pointer to itself", Message(7, kRd, {}).raw_question(loop, DnsType::a).str(), "FORMERR qr rd ra"},
        {"pointers in a circle", Message(7, kRd, {}).raw_question("\xc0\x0e\xc0\x0c"s, DnsType::a).str(),
         "FORMERR qr rd ra"},
        {"a pointer into the header", Message(7, kRd, {}).raw_question("\1a\xc0\x01"s, DnsType::a).str(),
         "FORMERR qr rd ra"},
        {"a pointer past the end", Message(7, kRd, {}).raw_question("\1a\xff\xff"s, DnsType::a).str(),
         "FORMERR qr rd ra"},
        {"a label that is too long",
         Message(7, kRd, {}).raw_question("\x40" + std::string(64, 'a') + "\0"s, DnsType::a).str(),
         "FORMERR qr rd ra"},
        {"a label without its end", Message(7, kRd, {}).raw("\5abc").str(), "FORMERR qr rd ra"},
        {"a name without its end", Message(7, kRd, {}).raw("\3abc").str(), "FORMERR qr rd ra"},
        {"no type", Message(7, kRd, {}).raw(name_bytes("a")).str(), "FORMERR qr rd ra"},
        {"half a class", Message(7, kRd, {}).raw(name_bytes("a")).raw("\0\1\0"s).str(), "FORMERR qr rd ra"},
        {"class CHAOS", Message(7, kRd, {}).question("version.bind", DnsType::txt, 3).str(),
         "REFUSED qr rd ra; version.bind. CH TXT"},
        {"class ANY", Message(7, kRd, {}).question("a", DnsType::a, 255).str(), "REFUSED qr rd ra; a. ANY A"},
        {"addresses of the root", simple("", DnsType::a), "REFUSED qr rd ra; . IN A"},
        {"a dot inside a label", Message(7, kRd, {}).raw_question("\3a.b\3com\0"s, DnsType::a).str(),
         "NXDOMAIN qr rd ra; a\\.b.com. IN A"},
        {"NUL", Message(7, kRd, {}).raw_question("\3a\0b\3com\0"s, DnsType::a).str(),
         "NXDOMAIN qr rd ra; a\\000b.com. IN A"},
        {"a blank", Message(7, kRd, {}).raw_question("\3a b\3com\0"s, DnsType::a).str(),
         "NXDOMAIN qr rd ra; a\\032b.com. IN A"},
        {"eight bits", Message(7, kRd, {}).raw_question("\2\xc3\xa4\3com\0"s, DnsType::a).str(),
         "NXDOMAIN qr rd ra; \\195\\164.com. IN A"},
        {"an asterisk", Message(7, kRd, {}).question("*.example.com", DnsType::a).str(),
         "NXDOMAIN qr rd ra; *.example.com. IN A"},
    };
    for (const auto& c : cases) {
        SCOPED_TRACE(c.what);
        const auto query = parse_query(c.message);
        ASSERT_FALSE(query);
        EXPECT_FALSE(query.error().error.message.empty());
        const std::string& reply = query.error().reply;
        EXPECT_EQ(reply.empty() ? "" : describe(reply), c.reply);
        if (!reply.empty()) EXPECT_EQ(reply.substr(0, 2), "\0\7"s);
    }
    // A name of 256 bytes on the wire, one too many.
    const std::string label = "\x3f" + std::string(63, 'a');
    EXPECT_FALSE(parse_query(
        Message(7, kRd, {}).raw_question(label + label + label + label + "\0"s, DnsType::a).str()));
    // A whole name behind a pointer is refused too: the question is sent back as it came.
    EXPECT_FALSE(
        parse_query(Message(7, kRd, {}).raw_question("\1a\xc0\x14"s, DnsType::a).raw("\1b\0"s).str()));
}

TEST(DnsQuery, EveryPrefixAndEveryFlippedByteIsSurvived) {
    const std::string whole = Message(7, kRd, {.additionals = 1})
                                  .question("www.example.com", DnsType::a)
                                  .opt(4096, 0, "1234")
                                  .str();
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_FALSE(parse_query(whole.substr(0, size))) << size;
    for (std::size_t at = 0; at < whole.size(); ++at) {
        for (int value = 0; value < 256; ++value) {
            std::string changed = whole;
            changed[at] = static_cast<char>(value);
            const auto query = parse_query(changed);
            const std::string reply =
                query ? encode(*query, nxdomain(), Transport::udp) : query.error().reply;
            if (query) EXPECT_TRUE(is_dns_name(query->question.name)) << at << " " << value;
            if (!reply.empty()) EXPECT_NE(describe(reply), "unreadable") << at << " " << value;
        }
    }
}

TEST(DnsTypes, WhatIsAskedAndWhatIsNot) {
    for (DnsType type : {DnsType::a, DnsType::cname, DnsType::mx, DnsType::txt, DnsType::ns, DnsType::soa,
                         DnsType::srv, DnsType::ptr, DnsType::caa})
        EXPECT_EQ(rule_for(type), TypeRule::ask) << static_cast<int>(type);
    for (DnsType type : {DnsType::aaaa, DnsType::https, DnsType::svcb})
        EXPECT_EQ(rule_for(type), TypeRule::no_data) << static_cast<int>(type);
    for (DnsType type : {DnsType::any, DnsType::axfr, DnsType::ixfr, DnsType::opt, DnsType{10}, DnsType{0},
                         DnsType{48}, DnsType{65535}})
        EXPECT_EQ(rule_for(type), TypeRule::refuse) << static_cast<int>(type);
}

TEST(DnsNames, CanonicalOnesOnly) {
    for (const char* name : {"a", "example.com", "_srv._tcp.x-1.y", "xn--4ca.de", "1.0.0.127.in-addr.arpa"})
        EXPECT_TRUE(is_dns_name(name)) << name;
    for (const char* name : {"", ".", "a.", ".a", "a..b", "A", "a b", "a/b", "ä", "*.a", "a\n"})
        EXPECT_FALSE(is_dns_name(name)) << name;
    EXPECT_TRUE(is_dns_name(std::string(63, 'a')));
    EXPECT_FALSE(is_dns_name(std::string(64, 'a')));
    std::string longest;
    for (int i = 0; i < 126; ++i) longest += "a.";
    EXPECT_TRUE(is_dns_name(longest + "a"));    // 253
    EXPECT_FALSE(is_dns_name(longest + "ab"));  // 254
    EXPECT_FALSE(is_dns_name("a\0b"s));
}

TEST(DnsReplies, WithoutRecords) {
    const DnsQuery query = query_for("example.com", DnsType::aaaa);
    EXPECT_EQ(describe(encode(query, nxdomain(), Transport::udp)), "NXDOMAIN qr rd ra; example.com. IN AAAA");
    EXPECT_EQ(describe(encode(query, no_data(), Transport::udp)), "NOERROR qr rd ra; example.com. IN AAAA");
    EXPECT_EQ(describe(encode(query, server_failure(), Transport::udp)),
              "SERVFAIL qr rd ra; example.com. IN AAAA");
    EXPECT_EQ(describe(encode(query, form_error(), Transport::tcp)),
              "FORMERR qr rd ra; example.com. IN AAAA");
    EXPECT_EQ(describe(encode(query, refused(), Transport::tcp)), "REFUSED qr rd ra; example.com. IN AAAA");
    EXPECT_EQ(describe(encode(query_for("a", DnsType::a, 512), nxdomain(), Transport::udp)),
              "NXDOMAIN qr rd ra; a. IN A; edns 1232 0");
}

TEST(DnsReplies, RecordsWithClampedTimes) {
    const DnsQuery query = query_for("www.example.com", DnsType::a);
    const DnsReply reply = answer({.chain = {{"cdn.example.net", 4000}, {"x", 20}},
                                   .addresses = {{{0x01020304}, 0}, {{0x05060708}, 60}}});
    EXPECT_EQ(describe(encode(query, reply, Transport::udp)),
              "NOERROR qr rd ra; www.example.com. IN A; www.example.com. 300 IN CNAME cdn.example.net.; "
              "cdn.example.net. 20 IN CNAME x.; x. 1 IN A 1.2.3.4; x. 60 IN A 5.6.7.8");
    EXPECT_EQ(describe(encode(query_for("a", DnsType::txt), answer({.others = {{"\2hi\3you"s, 7}}}),
                              Transport::udp)),
              "NOERROR qr rd ra; a. IN TXT; a. 7 IN TXT \"hi\" \"you\"");
    EXPECT_EQ(describe(encode(query_for("", DnsType::ns), answer({.others = {{name_bytes("a.root"), 7}}}),
                              Transport::udp)),
              "NOERROR qr rd ra; . IN NS; . 7 IN NS a.root.");
}

TEST(DnsReplies, WhatDoesNotFitIsLeftOutWhole) {
    DnsRecords records;
    for (std::uint32_t i = 0; i < 200; ++i) records.addresses.push_back({{0x0a000000 + i}, 60});
    const auto size = [&](std::optional<std::uint16_t> payload, Transport transport) {
        return encode(query_for("example.com", DnsType::a, payload), answer(records), transport);
    };
    const struct {
        std::optional<std::uint16_t> payload;
        std::size_t limit;
    } cases[] = {{std::nullopt, 512}, {0, 512}, {512, 512}, {800, 800}, {1232, 1232}, {65535, 1232}};
    for (const auto& c : cases) {
        const std::string bytes = size(c.payload, Transport::udp);
        EXPECT_LE(bytes.size(), c.limit);
        EXPECT_GT(bytes.size() + 16, c.limit);  // not a record less than fits
        EXPECT_TRUE(describe(bytes).starts_with("NOERROR qr tc rd ra;")) << describe(bytes);
    }
    EXPECT_TRUE(describe(size(std::nullopt, Transport::tcp)).starts_with("NOERROR qr rd ra;"));
    EXPECT_EQ(size(std::nullopt, Transport::tcp).size(), 12 + 17 + 200 * 16);

    // More than a message can hold, and one record that never fits.
    DnsRecords large;
    for (int i = 0; i < 5; ++i) large.others.push_back({std::string(20'000, '\0'), 60});
    large.others.push_back({std::string(70'000, '\0'), 60});
    const std::string bytes = encode(query_for("a", DnsType::txt), answer(large), Transport::tcp);
    EXPECT_LE(bytes.size(), 65535U);
    EXPECT_TRUE(wire::Reader(bytes).header()->flags & wire::Header::kTruncated);
    EXPECT_EQ(wire::Reader(bytes).header()->answers, 3);
}

TEST(DnsQuestions, AsServersReadThem) {
    EXPECT_EQ(describe(make_query(7, {"www.example.com", DnsType::mx}, false)),
              "NOERROR rd; www.example.com. IN MX");
    EXPECT_EQ(describe(make_query(7, {"", DnsType::ns}, true)), "NOERROR rd; . IN NS; edns 1232 0");
    const auto back = parse_query(make_query(7, {"a.b", DnsType::a}, true));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->question, (DnsQuestion{"a.b", DnsType::a}));
}

}  // namespace
}  // namespace gb::egress
