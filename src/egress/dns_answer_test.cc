// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "egress/dns_testing.h"

namespace gb::egress {
namespace {

using namespace testing;

const DnsQuestion kQuestion{"www.example.com", DnsType::a};
constexpr std::uint16_t kOk = 0x8180;

Message message(std::uint16_t answers, std::uint16_t flags = kOk, const DnsQuestion& question = kQuestion) {
    Message out(7, flags, {.answers = answers});
    out.question(question.name, question.type);
    return out;
}

Result<DnsAnswer> parse(const Message& m, const DnsQuestion& question = kQuestion) {
    return parse_answer(m.str(), 7, question);
}

ErrorCode error_of(const Result<DnsAnswer>& result) {
    return result ? ErrorCode::unknown : result.error().code;
}

TEST(DnsAnswer, AddressesAndTheirChain) {
    // Compressed as servers do it; records of others between them; letters of any case.
    const auto answer = parse(message(6)
                                  .raw_record("\xc0\x0c"s, DnsType::cname, 4000, "\3CDN\xc0\x10"s)
                                  .record("evil.example.com", DnsType::a, 60, a_rdata("6.6.6.6"))
                                  .record("cdn.Example.COM", DnsType::a, 0x80000000, a_rdata("1.2.3.4"))
                                  .record("cdn.example.com", DnsType::aaaa, 60, std::string(16, 'x'))
                                  .record("cdn.example.com", DnsType::a, 60, a_rdata("5.6.7.8"))
                                  .raw_record("\1*\0"s, DnsType::a, 60, a_rdata("6.6.6.6")));
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->rcode, Rcode::no_error);
    EXPECT_EQ(answer->records, (DnsRecords{.chain = {{"cdn.example.com", 300}},
                                           .addresses = {{{0x01020304}, 1}, {{0x05060708}, 60}}}));
}

TEST(DnsAnswer, NamesInsideRecordsAreWrittenOut) {
    const struct {
        DnsType type;
        std::string rdata, expected;
    } cases[] = {
        {DnsType::mx, "\0\x0a\4mail\xc0\x0c"s, "\0\x0a"s + name_bytes("mail.example.com")},
        {DnsType::ns, "\xc0\x0c"s, name_bytes("example.com")},
        {DnsType::ptr, "\1p\xc0\x0c"s, name_bytes("p.example.com")},
        {DnsType::cname, "\1c\xc0\x0c"s, name_bytes("c.example.com")},
        {DnsType::srv, "\0\1\0\2\1\xbb\1s\xc0\x0c"s, "\0\1\0\2\1\xbb"s + name_bytes("s.example.com")},
        {DnsType::soa, "\2ns\xc0\x0c\2pm\xc0\x0c"s + std::string(20, '\1'),
         name_bytes("ns.example.com") + name_bytes("pm.example.com") + std::string(20, '\1')},
        {DnsType::txt, "\3abc\0\2\xff\0"s, "\3abc\0\2\xff\0"s},
        {DnsType::caa, "\0\5issueca.example"s, "\0\5issueca.example"s},
    };
    for (const auto& c : cases) {
        SCOPED_TRACE(static_cast<int>(c.type));
        const DnsQuestion question{"example.com", c.type};
        const auto answer =
            parse(message(1, kOk, question).raw_record("\xc0\x0c"s, c.type, 60, c.rdata), question);
        ASSERT_TRUE(answer) << answer.error().message;
        EXPECT_EQ(answer->records.others, (std::vector<DnsRecord>{{c.expected, 60}}));
        // One byte more or less is another record.
        EXPECT_EQ(
            error_of(parse(message(1, kOk, question).raw_record("\xc0\x0c"s, c.type, 60, ""), question)),
            ErrorCode::data_loss);
        if (c.type == DnsType::caa) continue;  // its value ends with the record
        EXPECT_EQ(error_of(parse(message(1, kOk, question).raw_record("\xc0\x0c"s, c.type, 60, c.rdata + "x"),
                                 question)),
                  ErrorCode::data_loss);
    }
}

TEST(DnsAnswer, MessagesOfOthersAreNotAnswers) {
    const std::string good = message(1).record("www.example.com", DnsType::a, 60, a_rdata("1.2.3.4")).str();
    ASSERT_TRUE(parse_answer(good, 7, kQuestion));
    EXPECT_EQ(error_of(parse_answer(good, 8, kQuestion)), ErrorCode::aborted);
    EXPECT_EQ(error_of(parse_answer(good, 7, {"example.com", DnsType::a})), ErrorCode::aborted);
    EXPECT_EQ(error_of(parse_answer(good, 7, {"www.example.com", DnsType::mx})), ErrorCode::aborted);
    EXPECT_EQ(error_of(parse_answer("", 7, kQuestion)), ErrorCode::aborted);
    EXPECT_EQ(error_of(parse(message(0, 0x0100))), ErrorCode::aborted);            // a question
    EXPECT_EQ(error_of(parse(message(0, 0x8180 | 4 << 11))), ErrorCode::aborted);  // another opcode
    EXPECT_EQ(error_of(parse(Message(7, kOk, {}).question("www.example.com", DnsType::a, 3))),
              ErrorCode::aborted);
    EXPECT_EQ(error_of(parse(Message(7, kOk, {.questions = 2})
                                 .question("www.example.com", DnsType::a)
                                 .question("www.example.com", DnsType::a))),
              ErrorCode::aborted);
    // Without a question only failures are answers.
    EXPECT_EQ(error_of(parse(Message(7, kOk, {.questions = 0}))), ErrorCode::aborted);
    EXPECT_EQ(error_of(parse(Message(7, kOk | 3, {.questions = 0}))), ErrorCode::aborted);
    const auto failure = parse(Message(7, kOk | 1, {.questions = 0}));
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->rcode, Rcode::format_error);
}

TEST(DnsAnswer, NegativesFailuresAndTruncation) {
    EXPECT_EQ(parse(message(0)).value().records, DnsRecords{});
    EXPECT_EQ(parse(message(0, kOk | 3)).value().rcode, Rcode::name_error);
    EXPECT_EQ(parse(message(0, kOk | 2)).value().rcode, Rcode::server_failure);
    // Cut in the middle of a record, as it may be.
    const auto cut = parse(message(9, kOk | 0x0200).raw("\xc0\x0c\0\1"s));
    ASSERT_TRUE(cut);
    EXPECT_TRUE(cut->truncated);
    // Aliases may lead to a name without addresses.
    const auto dangling = parse(message(1).record("www.example.com", DnsType::cname, 60, name_bytes("b")));
    EXPECT_EQ(dangling.value().records, (DnsRecords{.chain = {{"b", 60}}}));
}

TEST(DnsAnswer, HostileOnes) {
    auto alias = [](Message& m, std::string_view from, std::string_view to) {
        m.record(from, DnsType::cname, 60, name_bytes(to));
    };
    Message self = message(1), circle = message(3), two = message(2), same = message(3);
    alias(self, "www.example.com", "www.example.com");
    alias(circle, "www.example.com", "a");
    alias(circle, "a", "b");
    alias(circle, "b", "a");
    alias(two, "www.example.com", "a");
    alias(two, "www.example.com", "b");
    EXPECT_EQ(error_of(parse(self)), ErrorCode::data_loss);
    EXPECT_EQ(error_of(parse(circle)), ErrorCode::data_loss);
    EXPECT_EQ(error_of(parse(two)), ErrorCode::data_loss);
    alias(same, "www.example.com", "a");
    alias(same, "www.example.com", "A");
    same.record("a", DnsType::a, 60, a_rdata("1.2.3.4"));
    EXPECT_EQ(error_of(parse(same)), ErrorCode::data_loss);  // byte for byte another one: doubt

    for (int length : {16, 17}) {
        Message chain = message(static_cast<std::uint16_t>(length + 1));
        std::string name = "www.example.com";
        for (int i = 0; i < length; ++i) {
            alias(chain, name, "n" + std::to_string(i));
            name = "n" + std::to_string(i);
        }
        chain.record(name, DnsType::a, 60, a_rdata("1.2.3.4"));
        EXPECT_EQ(parse(chain).has_value(), length == 16);
    }

    EXPECT_EQ(error_of(parse(message(1).record("www.example.com", DnsType::a, 60, "123"))),
              ErrorCode::data_loss);
    EXPECT_EQ(error_of(parse(message(1).record("www.example.com", DnsType::a, 60, "12345"))),
              ErrorCode::data_loss);
    EXPECT_EQ(error_of(parse(message(2).record("www.example.com", DnsType::a, 60, "1234"))),
              ErrorCode::data_loss);
    EXPECT_EQ(error_of(parse(message(1).raw_record("\xc0\x0c"s, DnsType::cname, 60, "\3a b\0"s))),
              ErrorCode::data_loss);
    EXPECT_EQ(error_of(parse(message(1).raw_record("\xc0\x0c"s, DnsType::cname, 60, "\0"s))),
              ErrorCode::data_loss);
    // The alias's name runs on behind its record, into the next one.
    EXPECT_EQ(error_of(parse(message(2)
                                 .raw_record("\xc0\x0c"s, DnsType::cname, 60,
                                             "\x02"
                                             "a"s)
                                 .record("b", DnsType::a, 60, "1234"))),
              ErrorCode::data_loss);
    EXPECT_EQ(error_of(parse(message(1).raw_record("\xc0\x21"s, DnsType::a, 60, "1234"))),
              ErrorCode::data_loss);

    Message many = message(100), too_many = message(600);
    for (int i = 0; i < 100; ++i) many.record("www.example.com", DnsType::a, 60, "1234");
    for (int i = 0; i < 600; ++i) too_many.record("www.example.com", DnsType::a, 60, "1234");
    EXPECT_EQ(parse(many).value().records.addresses.size(), kMaxAddresses);
    EXPECT_EQ(error_of(parse(too_many)), ErrorCode::data_loss);

    const DnsQuestion txt{"a", DnsType::txt};
    auto strings = [&](const std::string& rdata) {
        return parse(message(1, kOk, txt).record("a", DnsType::txt, 60, rdata), txt);
    };
    EXPECT_EQ(strings(std::string(60'000, '\0')).value().records.others.at(0).rdata.size(), 60'000U);
    EXPECT_EQ(error_of(strings(std::string(60'000, '\0') + "\1")), ErrorCode::data_loss);
    EXPECT_EQ(error_of(parse(message(0), {"www.example.com", DnsType::any})), ErrorCode::invalid_argument);
}

// Names made of thousands of pointers, which cost something to follow: it ends, and soon (the test's own
// limit).
TEST(DnsAnswer, LongWaysThroughPointers) {
    const DnsQuestion question{"a", DnsType::soa};
    Message m = message(256, kOk, question);
    std::string pointers("\0", 1);  // the root, and pointers each to the one before
    auto target = static_cast<std::uint16_t>(m.str().size() + 13);  // behind the first record's head
    for (auto at = static_cast<std::uint16_t>(target + 1); at < 0x3ff0; at += 2) {
        wire::put_u16(pointers, 0xc000 | target);
        target = at;
    }
    m.record("a", DnsType::txt, 60, pointers);
    std::string last;
    wire::put_u16(last, static_cast<std::uint16_t>(0xc000 | target));
    for (int i = 0; i < 255; ++i)
        m.raw_record("\xc0\x0c"s, DnsType::soa, 60, last + last + std::string(20, '\1'));
    const auto answer = parse(m, question);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->records.others.size(), 255U);
}

TEST(DnsAnswer, EveryPrefixAndEveryFlippedByteIsSurvived) {
    const std::string whole = message(2)
                                  .raw_record("\xc0\x0c"s, DnsType::cname, 60, "\3cdn\xc0\x10"s)
                                  .record("cdn.example.com", DnsType::a, 60, a_rdata("1.2.3.4"))
                                  .str();
    ASSERT_TRUE(parse_answer(whole, 7, kQuestion));
    const DnsQuery query = parse_query(make_query(9, kQuestion, false)).value();
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_FALSE(parse_answer(whole.substr(0, size), 7, kQuestion)) << size;
    for (std::size_t at = 0; at < whole.size(); ++at) {
        for (int value = 0; value < 256; ++value) {
            std::string changed = whole;
            changed[at] = static_cast<char>(value);
            const auto got = parse_answer(changed, 7, kQuestion);
            if (!got || got->truncated || got->rcode != Rcode::no_error) continue;
            // What was understood reaches a guest as it was understood.
            const std::string told = encode(query, answer(got->records), Transport::udp);
            EXPECT_EQ(parse_answer(told, 9, kQuestion).value().records, got->records) << at << " " << value;
        }
    }
}

}  // namespace
}  // namespace gb::egress
