// SPDX-License-Identifier: Apache-2.0
// parse_answer() of dns_message.h.
#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "egress/dns_message.h"
#include "egress/dns_wire.h"
#include "egress/ldns.h"

namespace gb::egress {
namespace {

using wire::Header;

// A name's pointers may take a few thousand steps to follow; the product is what a server can make us do.
constexpr std::size_t kMaxRecords = 256;

struct RrDeleter {
    void operator()(ldns_rr* rr) const { ldns_rr_free(rr); }
};

struct Record {
    std::string owner;
    DnsType type;
    std::uint32_t ttl_s = 0;
    std::string rdata;  // names in it are written out
};

std::unexpected<Error> not_ours() {
    return fail(ErrorCode::aborted, "dns answer to another question");
}

std::unexpected<Error> broken(std::string what) {
    return fail(ErrorCode::data_loss, "dns answer with " + std::move(what));
}

// RFC 2181 section 8: a TTL with the highest bit set is 0.
std::uint32_t clamp_ttl(std::uint32_t ttl_s) {
    return std::clamp(ttl_s >> 31 ? 0 : ttl_s, kMinTtlSeconds, kMaxTtlSeconds);
}

// TXT is strings up to the end. ldns copies each into room for the whole record: 64 KiB of empty ones would
// take gigabytes.
bool is_strings(std::string_view rdata) {
    if (rdata.empty()) return false;
    while (!rdata.empty()) {
        const std::size_t size = 1 + static_cast<unsigned char>(rdata[0]);
        if (size > rdata.size()) return false;
        rdata.remove_prefix(size);
    }
    return true;
}

// The record from `begin` to the end of `message`, its rdata field by field. ldns stops where it has all
// fields that it expects and takes too few for complete, so both are checked here.
Result<std::string> read_rdata(std::string_view message, std::size_t begin) {
    ldns_rr* raw = nullptr;
    std::size_t at = begin;
    const ldns_status status = ldns_wire2rr(&raw, reinterpret_cast<const std::uint8_t*>(message.data()),
                                            message.size(), &at, LDNS_SECTION_ANSWER);
    if (status != LDNS_STATUS_OK) return broken("a malformed record");
    const std::unique_ptr<ldns_rr, RrDeleter> rr(raw);
    if (at != message.size() ||
        ldns_rr_rd_count(raw) < ldns_rr_descriptor_minimum(ldns_rr_descript(ldns_rr_get_type(raw))))
        return broken("a record of the wrong length");
    std::string rdata;
    for (std::size_t i = 0; i < ldns_rr_rd_count(raw); ++i) {
        const ldns_rdf* field = ldns_rr_rdf(raw, i);
        rdata.append(reinterpret_cast<const char*>(ldns_rdf_data(field)), ldns_rdf_size(field));
    }
    return rdata;
}

// The next record, or nothing if it cannot belong to the answer: another class or type, or no host's name.
Result<std::optional<Record>> read_record(wire::Reader& reader, DnsType asked) {
    const std::size_t begin = reader.position();
    GB_TRY_ASSIGN(auto owner, reader.name());
    GB_TRY_ASSIGN(const std::uint16_t type, reader.u16());
    GB_TRY_ASSIGN(const std::uint16_t dns_class, reader.u16());
    GB_TRY_ASSIGN(const std::uint32_t ttl_s, reader.u32());
    GB_TRY_ASSIGN(const std::uint16_t length, reader.u16());
    GB_TRY(reader.skip(length));
    const bool wanted = DnsType{type} == asked || DnsType{type} == DnsType::cname;
    if (!wanted || dns_class != wire::kClassIn || !owner.text) return std::nullopt;
    Record record{.owner = *std::move(owner.text), .type = DnsType{type}, .ttl_s = clamp_ttl(ttl_s)};
    if (record.type == DnsType::txt) {
        record.rdata = reader.message().substr(reader.position() - length, length);
        if (!is_strings(record.rdata)) return broken("a malformed record");
        return record;
    }
    GB_TRY_ASSIGN(record.rdata, read_rdata(reader.message().substr(0, reader.position()), begin));
    return record;
}

// The one alias of a name, if it has one.
Result<std::optional<DnsAlias>> alias_of(const std::vector<Record>& records, std::string_view name) {
    const Record* found = nullptr;
    for (const Record& record : records) {
        if (record.type != DnsType::cname || record.owner != name) continue;
        if (found && found->rdata != record.rdata) return broken("two aliases of a name");
        found = &record;
    }
    if (!found) return std::nullopt;
    auto target = wire::text_of_name(found->rdata);
    if (!target || target->empty()) return broken("an alias to what is no host name");
    return DnsAlias{*std::move(target), found->ttl_s};
}

bool take_records(const std::vector<Record>& records, std::string_view name, DnsType type, DnsRecords& out) {
    for (const Record& record : records) {
        if (record.type != type || record.owner != name) continue;
        if (type != DnsType::a) {
            out.others.push_back({record.rdata, record.ttl_s});
        } else if (out.addresses.size() < kMaxAddresses) {
            auto address = wire::Reader(record.rdata).u32();  // four bytes: ldns has seen to that
            out.addresses.push_back({net::Ipv4{*address}, record.ttl_s});
        }
    }
    return !out.addresses.empty() || !out.others.empty();
}

Result<DnsRecords> follow(const std::vector<Record>& records, const DnsQuestion& question) {
    DnsRecords out;
    std::string name = question.name;
    std::set<std::string> seen{name};
    while (!take_records(records, name, question.type, out)) {
        GB_TRY_ASSIGN(auto alias, alias_of(records, name));
        if (!alias) break;
        if (!seen.insert(alias->target).second) return broken("aliases in a circle");
        if (out.chain.size() == kMaxAliases) return broken("too many aliases");
        name = alias->target;
        out.chain.push_back(*std::move(alias));
    }
    return out;
}

}  // namespace

Result<DnsAnswer> parse_answer(std::string_view message, std::uint16_t id, const DnsQuestion& question) {
    if (rule_for(question.type) != TypeRule::ask)
        return fail(ErrorCode::invalid_argument, "dns type that is not asked for");
    wire::Reader reader(message);
    const auto header = reader.header();
    if (!header || header->id != id || !header->is_response() || header->opcode() != 0) return not_ours();
    DnsAnswer answer{.rcode = Rcode{static_cast<std::uint16_t>(header->rcode())}};
    const bool final = answer.rcode == Rcode::no_error || answer.rcode == Rcode::name_error;
    if (header->questions == 0 && !final) return answer;

    if (header->questions != 1) return not_ours();
    const auto name = reader.name();
    const auto type = reader.u16();
    const auto dns_class = reader.u16();
    if (!name || name->text != question.name || !type || DnsType{*type} != question.type || !dns_class ||
        *dns_class != wire::kClassIn)
        return not_ours();

    answer.truncated = (header->flags & Header::kTruncated) != 0;
    if (answer.truncated || answer.rcode != Rcode::no_error) return answer;
    if (header->answers > kMaxRecords) return broken(fmt::format("{} records", header->answers));
    std::vector<Record> records;
    for (unsigned i = 0; i < header->answers; ++i) {
        GB_TRY_ASSIGN(auto record, read_record(reader, question.type));
        if (record) records.push_back(*std::move(record));
    }
    GB_TRY_ASSIGN(answer.records, follow(records, question));
    return answer;
}

}  // namespace gb::egress
