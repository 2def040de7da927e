// SPDX-License-Identifier: Apache-2.0
// A server's bytes, behind the head that makes them an answer. What is understood of them, told to a guest,
// is understood as the same.
#include <array>
#include <cstdlib>

#include "egress/dns_message.h"
#include "egress/dns_wire.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace gb::egress;
    if (size < 2) return 0;
    constexpr std::array kTypes = {DnsType::a,   DnsType::cname, DnsType::mx,  DnsType::txt, DnsType::ns,
                                   DnsType::soa, DnsType::srv,   DnsType::ptr, DnsType::caa};
    const DnsQuestion question{"www.example.com", kTypes[data[0] % kTypes.size()]};
    std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);

    std::string message;
    if (data[1] != 0) {
        message = make_query(7, question, false);
        wire::set_u16(message, 2, 0x8180);
        wire::set_u16(message, 6, data[1]);  // so many records
    }
    message += bytes;
    const auto got = parse_answer(message, 7, question);
    if (!got || got->truncated || got->rcode != Rcode::no_error) return 0;

    const DnsRecords& records = got->records;
    if (records.chain.size() > kMaxAliases || records.addresses.size() > kMaxAddresses) std::abort();
    for (const DnsAlias& alias : records.chain)
        if (!is_dns_name(alias.target)) std::abort();
    const DnsQuery query = parse_query(make_query(9, question, false)).value();
    const std::string told = encode(query, answer(records), Transport::tcp);
    const auto again = parse_answer(told, 9, question);
    if (!again || (!again->truncated && again->records != records)) std::abort();
    return 0;
}
