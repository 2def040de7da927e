// SPDX-License-Identifier: Apache-2.0
#include "egress/dns_message.h"

#include <algorithm>

#include <fmt/format.h>

#include "egress/dns_wire.h"

namespace gb::egress {
namespace {

using wire::Header;

constexpr std::uint16_t kPointer = 0xc000, kFarthestPointer = 0x3fff;
constexpr std::size_t kOptSize = 11;

void put_opt(std::string& out, Rcode rcode) {
    out.push_back('\0');  // the root
    wire::put_u16(out, static_cast<std::uint16_t>(DnsType::opt));
    wire::put_u16(out, kUdpPayload);
    wire::put_u32(out, static_cast<std::uint32_t>(rcode) >> 4 << 24);  // the upper bits of rcode; version 0
    wire::put_u16(out, 0);
}

Header reply_header(const DnsQuery& query, Rcode rcode) {
    Header header{.id = query.id, .flags = Header::kResponse | Header::kRecursionAvailable};
    if (query.recursion_desired) header.flags |= Header::kRecursionDesired;
    if (query.checking_disabled) header.flags |= Header::kCheckingDisabled;
    header.flags |= static_cast<std::uint16_t>(rcode) & 0xf;
    header.questions = query.raw_question.empty() ? 0 : 1;
    return header;
}

// Writes answer records as long as they fit. An owner is a pointer to where its name stands already.
class AnswerWriter {
  public:
    AnswerWriter(std::string& out, std::size_t limit) : out_(out), limit_(limit) {}

    // False, and nothing is written, if there is no room.
    bool add(DnsType type, std::uint32_t ttl_s, std::string_view rdata) {
        if (rdata.size() > 0xffff || out_.size() + 12 + rdata.size() > limit_) return false;
        wire::put_u16(out_, static_cast<std::uint16_t>(kPointer | owner_));
        wire::put_u16(out_, static_cast<std::uint16_t>(type));
        wire::put_u16(out_, wire::kClassIn);
        wire::put_u32(out_, std::clamp(ttl_s, kMinTtlSeconds, kMaxTtlSeconds));
        wire::put_u16(out_, static_cast<std::uint16_t>(rdata.size()));
        out_.append(rdata);
        ++count;
        return true;
    }
    bool add_alias(const DnsAlias& alias) {
        std::string target;
        wire::put_name(target, alias.target);
        if (out_.size() + 12 > kFarthestPointer) return false;  // the next owner could not point to it
        if (!add(DnsType::cname, alias.ttl_s, target)) return false;
        owner_ = out_.size() - target.size();
        return true;
    }

    std::uint16_t count = 0;

  private:
    std::string& out_;
    std::size_t limit_;
    std::size_t owner_ = wire::kHeaderSize;  // the question's name
};

bool add_records(AnswerWriter& writer, DnsType type, const DnsRecords& records) {
    for (const DnsAlias& alias : records.chain)
        if (!writer.add_alias(alias)) return false;
    for (const DnsAddress& address : records.addresses) {
        std::string rdata;
        wire::put_u32(rdata, address.address.value);
        if (!writer.add(DnsType::a, address.ttl_s, rdata)) return false;
    }
    for (const DnsRecord& record : records.others)
        if (!writer.add(type, record.ttl_s, record.rdata)) return false;
    return true;
}

std::size_t room(const DnsQuery& query, Transport transport) {
    if (transport == Transport::tcp) return 0xffff;
    return std::clamp<std::size_t>(query.edns_payload.value_or(512), 512, kUdpPayload);
}

// The OPT record of a query: what is behind its question.
struct Opt {
    std::uint16_t payload = 0;
    unsigned version = 0;
};
Result<Opt> read_opt(wire::Reader& reader) {
    GB_TRY_ASSIGN(const auto owner, reader.name());
    GB_TRY_ASSIGN(const std::uint16_t type, reader.u16());
    if (owner.text != "" || owner.compressed || DnsType{type} != DnsType::opt)
        return fail(ErrorCode::invalid_argument, "dns query with a record that is no OPT");
    GB_TRY_ASSIGN(const std::uint16_t payload, reader.u16());
    GB_TRY_ASSIGN(const std::uint32_t flags, reader.u32());
    GB_TRY_ASSIGN(const std::uint16_t length, reader.u16());
    GB_TRY(reader.skip(length));  // options are ignored, and never passed on
    return Opt{payload, (flags >> 16) & 0xff};
}

std::unexpected<UnusableQuery> unusable(const DnsQuery& query, Rcode rcode, Error error) {
    return std::unexpected(
        UnusableQuery{std::move(error), encode(query, DnsReply{.rcode = rcode}, Transport::udp)});
}

}  // namespace

TypeRule rule_for(DnsType type) {
    switch (type) {
        case DnsType::a:
        case DnsType::cname:
        case DnsType::mx:
        case DnsType::txt:
        case DnsType::ns:
        case DnsType::soa:
        case DnsType::srv:
        case DnsType::ptr:
        case DnsType::caa:
            return TypeRule::ask;
        case DnsType::aaaa:
        case DnsType::https:
        case DnsType::svcb:
            return TypeRule::no_data;
        default:
            return TypeRule::refuse;
    }
}

bool is_dns_name(std::string_view text) {
    if (text.empty() || text.size() > 253) return false;
    std::size_t label = 0;
    for (char c : text) {
        if (c == '.') {
            if (label == 0) return false;
            label = 0;
        } else {
            if (!wire::is_name_letter(c) || ++label > 63) return false;
        }
    }
    return label > 0;
}

std::expected<DnsQuery, UnusableQuery> parse_query(std::string_view message) {
    wire::Reader reader(message);
    const auto header = reader.header();
    if (!header) return std::unexpected(UnusableQuery{header.error(), {}});
    if (header->is_response())
        return std::unexpected(
            UnusableQuery{Error(ErrorCode::invalid_argument, "dns answer, not a query"), {}});

    DnsQuery query{.id = header->id,
                   .recursion_desired = (header->flags & Header::kRecursionDesired) != 0,
                   .checking_disabled = (header->flags & Header::kCheckingDisabled) != 0};
    auto malformed = [&](Error error) { return unusable(query, Rcode::format_error, std::move(error)); };
    auto odd = [&](std::string what) {
        return malformed(Error(ErrorCode::invalid_argument, std::move(what)));
    };

    if (header->opcode() != 0)
        return unusable(query, Rcode::not_implemented,
                        Error(ErrorCode::unimplemented, fmt::format("dns opcode {}", header->opcode())));
    if (header->flags & (Header::kTruncated | Header::kRecursionAvailable) || header->rcode() != 0)
        return odd("dns query with an answer's flags");
    if (header->questions != 1) return odd(fmt::format("dns query with {} questions", header->questions));
    if (header->answers != 0 || header->authorities != 0 || header->additionals > 1)
        return odd("dns query with answers");

    const auto name = reader.name();
    if (!name) return malformed(name.error());
    if (name->compressed) return odd("dns query with a compressed name");
    const auto type = reader.u16();
    if (!type) return malformed(type.error());
    const auto dns_class = reader.u16();
    if (!dns_class) return malformed(dns_class.error());
    // From here on the question is known and goes into every reply.
    query.raw_question = message.substr(wire::kHeaderSize, reader.position() - wire::kHeaderSize);
    query.question.type = DnsType{*type};

    if (header->additionals == 1) {
        const auto opt = read_opt(reader);
        if (!opt) return malformed(opt.error());
        query.edns_payload = opt->payload;
        if (opt->version != 0)
            return unusable(query, Rcode::bad_version,
                            Error(ErrorCode::unimplemented, fmt::format("EDNS version {}", opt->version)));
    }
    if (!reader.at_end()) return odd("dns query with bytes behind its end");
    if (*dns_class != wire::kClassIn)
        return unusable(query, Rcode::refused,
                        Error(ErrorCode::unimplemented, fmt::format("dns class {}", *dns_class)));
    if (!name->text)
        return unusable(query, Rcode::name_error,
                        Error(ErrorCode::invalid_argument, "dns name with bytes that no host name has"));
    if (name->text->empty() && query.question.type != DnsType::ns)
        return unusable(query, Rcode::refused,
                        Error(ErrorCode::invalid_argument, "dns query about the root that is not for NS"));
    query.question.name = *name->text;
    return query;
}

DnsReply nxdomain() {
    return {.rcode = Rcode::name_error};
}
DnsReply no_data() {
    return {};
}
DnsReply server_failure() {
    return {.rcode = Rcode::server_failure};
}
DnsReply form_error() {
    return {.rcode = Rcode::format_error};
}
DnsReply refused() {
    return {.rcode = Rcode::refused};
}
DnsReply answer(DnsRecords records) {
    return {.records = std::move(records)};
}

std::string encode(const DnsQuery& query, const DnsReply& reply, Transport transport) {
    Header header = reply_header(query, reply.rcode);
    std::string out;
    wire::put_header(out, header);
    out.append(query.raw_question);
    if (reply.rcode == Rcode::no_error) {
        AnswerWriter writer(out, room(query, transport) - (query.edns_payload ? kOptSize : 0));
        if (!add_records(writer, query.question.type, reply.records)) header.flags |= Header::kTruncated;
        header.answers = writer.count;
    }
    if (query.edns_payload) {
        put_opt(out, reply.rcode);
        header.additionals = 1;
    }
    std::string head;
    wire::put_header(head, header);
    return out.replace(0, head.size(), head);
}

std::string make_query(std::uint16_t id, const DnsQuestion& question, bool with_edns) {
    std::string out;
    wire::put_header(out, {.id = id,
                           .flags = Header::kRecursionDesired,
                           .questions = 1,
                           .additionals = static_cast<std::uint16_t>(with_edns ? 1 : 0)});
    wire::put_name(out, question.name);
    wire::put_u16(out, static_cast<std::uint16_t>(question.type));
    wire::put_u16(out, wire::kClassIn);
    if (with_edns) put_opt(out, Rcode::no_error);
    return out;
}

}  // namespace gb::egress
