// SPDX-License-Identifier: Apache-2.0
// DNS messages as sandboxes and servers send them (RFC 1035, EDNS of RFC 6891). Pure: bytes in, bytes out.
// Both sides are strangers: a guest's question is read strictly and judged by its canonical name, and nothing
// that a server sent reaches a guest as it was; answers are built anew from what was understood.
#pragma once

#include <compare>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/cidr.h"

namespace gb::egress {

enum class DnsType : std::uint16_t {  // every number is possible; these are the ones that the code names
    a = 1,
    ns = 2,
    cname = 5,
    soa = 6,
    ptr = 12,
    mx = 15,
    txt = 16,
    aaaa = 28,
    srv = 33,
    opt = 41,
    svcb = 64,
    https = 65,
    ixfr = 251,
    axfr = 252,
    any = 255,
    caa = 257,
};

enum class Rcode : std::uint16_t {
    no_error = 0,
    format_error = 1,
    server_failure = 2,
    name_error = 3,  // NXDOMAIN
    not_implemented = 4,
    refused = 5,
    bad_version = 16,  // of EDNS; travels in the OPT record
};

// What is done about a type for a name that policy allows.
enum class TypeRule {
    ask,      // A, CNAME, MX, TXT, NS, SOA, SRV, PTR, CAA
    no_data,  // AAAA, HTTPS, SVCB: sandboxes have no IPv6, and hints and keys in the others get past name
              // rules
    refuse,   // all others: ANY, transfers, what nobody asked for yet
};
TypeRule rule_for(DnsType type);

// Canonical text of a name: labels of a-z, 0-9, '-' and '_' joined with dots, none at the end; at most 63
// bytes a label and 253 in all. The root is "" and no name here.
bool is_dns_name(std::string_view text);

struct DnsQuestion {
    std::string name;  // canonical
    DnsType type = DnsType::a;
    auto operator<=>(const DnsQuestion&) const = default;
};

// A guest's query. Class is IN.
struct DnsQuery {
    std::uint16_t id = 0;
    bool recursion_desired = false;
    bool checking_disabled = false;
    DnsQuestion question;      // the root's name "" with type NS only
    std::string raw_question;  // as it was sent, upper case too: resolvers compare it with the answer's
    std::optional<std::uint16_t> edns_payload;  // what the OPT record offers, if there is one
};

struct UnusableQuery {
    Error error;
    std::string reply;  // to be sent as it is; empty: no answer (it is not a query at all)
};

// One question, opcode QUERY, class IN, nothing but one OPT record behind it. Names with other bytes in their
// labels do not exist for us (NXDOMAIN); what is malformed or odd is FORMERR; other opcodes NOTIMP; other
// classes and questions about the root REFUSED.
std::expected<DnsQuery, UnusableQuery> parse_query(std::string_view message);

struct DnsAlias {
    std::string target;  // canonical
    std::uint32_t ttl_s = 0;
    bool operator==(const DnsAlias&) const = default;
};
struct DnsAddress {
    net::Ipv4 address;
    std::uint32_t ttl_s = 0;
    bool operator==(const DnsAddress&) const = default;
};
struct DnsRecord {
    std::string rdata;  // names in it are not compressed
    std::uint32_t ttl_s = 0;
    bool operator==(const DnsRecord&) const = default;
};

// Records that answer a question: aliases from the asked name on, in order, then what the last name has of
// the asked type.
struct DnsRecords {
    std::vector<DnsAlias> chain;
    std::vector<DnsAddress> addresses;  // type A
    std::vector<DnsRecord> others;      // any other type
    bool operator==(const DnsRecords&) const = default;
};

inline constexpr std::uint32_t kMinTtlSeconds = 1, kMaxTtlSeconds = 300;
inline constexpr std::size_t kMaxAliases = 16, kMaxAddresses = 64;
inline constexpr std::uint16_t kUdpPayload = 1232;  // passes every usual path without being fragmented

// What a guest is told. The factories are the usual ones.
struct DnsReply {
    Rcode rcode = Rcode::no_error;
    DnsRecords records;
    bool filtered = false;         // for the caller's log: every address of the name was closed by policy
    std::optional<Error> failure;  // likewise: why it is a server failure
};
DnsReply nxdomain();
// The name exists, the type does not. Neither this nor nxdomain() bears a SOA: without one, resolvers do not
// keep a negative answer (RFC 2308 section 5), and policy may allow the name a moment later.
DnsReply no_data();
DnsReply server_failure();
DnsReply form_error();
DnsReply refused();
DnsReply answer(DnsRecords records);

enum class Transport { udp, tcp };

// The reply's bytes for this query, TTLs clamped to 1…300 s. Over UDP at most min(what the guest offers,
// 1232), 512 without an offer; records that do not fit are left out whole and TC is set. Without the length
// of TCP's framing.
std::string encode(const DnsQuery& query, const DnsReply& reply, Transport transport);

// A question for a server, recursion desired; with_edns offers kUdpPayload.
std::string make_query(std::uint16_t id, const DnsQuestion& question, bool with_edns);

// A server's answer as far as it concerns the question.
struct DnsAnswer {
    Rcode rcode = Rcode::no_error;
    bool truncated = false;  // then there are no records: ask again over TCP
    DnsRecords records;      // for no_error only
};

// Errors: aborted if the message is no answer to this question (another id, question or direction: a
// forger's, or a late one's), data_loss if it is and cannot be understood. A failure without a question
// section, as servers without EDNS send it, is an answer; success and NXDOMAIN without one are not. Records
// of other names are left out; loops, more than 16 aliases and two different aliases of a name are data_loss;
// addresses beyond the 64th are left out.
// invalid_argument for types that rule_for() does not have asked.
Result<DnsAnswer> parse_answer(std::string_view message, std::uint16_t id, const DnsQuestion& question);

}  // namespace gb::egress
