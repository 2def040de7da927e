// SPDX-License-Identifier: Apache-2.0
// A guest's bytes. Every reply is one that ldns can read, and has the query's id and question.
#include <cstdlib>

#include "egress/dns_message.h"
#include "egress/dns_wire.h"
#include "egress/ldns.h"

namespace {

using namespace gb::egress;

void check(bool holds) {
    if (!holds) std::abort();
}

void check_reply(std::string_view query, std::string_view reply, std::size_t limit) {
    check(reply.size() <= limit && reply.substr(0, 2) == query.substr(0, 2));
    ldns_pkt* packet = nullptr;
    check(ldns_wire2pkt(&packet, reinterpret_cast<const std::uint8_t*>(reply.data()), reply.size()) ==
          LDNS_STATUS_OK);
    check(ldns_pkt_qr(packet));
    ldns_pkt_free(packet);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const auto query = parse_query(bytes);
    if (!query) {
        if (!query.error().reply.empty()) check_reply(bytes, query.error().reply, kUdpPayload);
        return 0;
    }
    const DnsQuestion& question = query->question;
    check(is_dns_name(question.name) || (question.name.empty() && question.type == DnsType::ns));
    check(bytes.substr(12).starts_with(query->raw_question));
    check_reply(bytes, encode(*query, nxdomain(), Transport::udp), kUdpPayload);

    DnsRecords records{.chain = {{"alias.example", 5}}};
    for (std::uint32_t i = 0; i < 100; ++i) records.addresses.push_back({{i}, i});
    const std::string reply = encode(*query, answer(records), Transport::tcp);
    check_reply(bytes, reply, 65535);
    check_reply(bytes, encode(*query, answer(records), Transport::udp), kUdpPayload);
    if (question.type == DnsType::a) {
        const auto read = parse_answer(reply, query->id, question);
        check(read && read->records.addresses.size() == kMaxAddresses && read->records.chain.size() == 1);
    }
    // What is asked in the guest's place is the same question.
    const auto again = parse_query(make_query(query->id, question, true));
    check(again && again->question == question);
    return 0;
}
