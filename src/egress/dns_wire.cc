// SPDX-License-Identifier: Apache-2.0
#include "egress/dns_wire.h"

#include "egress/ldns.h"

namespace gb::egress::wire {
namespace {

struct RdfDeleter {
    void operator()(ldns_rdf* rdf) const { ldns_rdf_deep_free(rdf); }
};

std::uint8_t byte_at(std::string_view bytes, std::size_t at) {
    return static_cast<std::uint8_t>(bytes[at]);
}

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::unexpected<Error> too_short() {
    return fail(ErrorCode::data_loss, "dns message ends too early");
}

}  // namespace

std::optional<std::string> text_of_name(std::string_view uncompressed) {
    std::string text;
    for (std::size_t at = 0; at < uncompressed.size() && uncompressed[at] != 0;) {
        const std::size_t length = byte_at(uncompressed, at++);
        if (at + length > uncompressed.size()) return std::nullopt;
        if (!text.empty()) text.push_back('.');
        for (char c : uncompressed.substr(at, length)) {
            if (!is_name_letter(lower(c))) return std::nullopt;
            text.push_back(lower(c));
        }
        at += length;
    }
    return text;
}

Result<std::uint16_t> Reader::u16() {
    if (message_.size() - position_ < 2) return too_short();
    const unsigned value = byte_at(message_, position_) << 8 | byte_at(message_, position_ + 1);
    position_ += 2;
    return static_cast<std::uint16_t>(value);
}

Result<std::uint32_t> Reader::u32() {
    GB_TRY_ASSIGN(const std::uint32_t high, u16());
    GB_TRY_ASSIGN(const std::uint32_t low, u16());
    return high << 16 | low;
}

Result<Header> Reader::header() {
    Header header;
    for (std::uint16_t* field : {&header.id, &header.flags, &header.questions, &header.answers,
                                 &header.authorities, &header.additionals}) {
        GB_TRY_ASSIGN(*field, u16());
    }
    return header;
}

Status Reader::skip(std::size_t count) {
    if (message_.size() - position_ < count) return too_short();
    position_ += count;
    return {};
}

Result<Reader::Name> Reader::name() {
    ldns_rdf* raw = nullptr;
    std::size_t end = position_;
    // ldns follows pointers for at most 65,535 steps, wherever they lead. Bounded; see the limit on records
    // in dns_answer.cc for the sum.
    const ldns_status status =
        ldns_wire2dname(&raw, reinterpret_cast<const std::uint8_t*>(message_.data()), message_.size(), &end);
    if (status != LDNS_STATUS_OK || end > message_.size())
        return fail(ErrorCode::data_loss, "dns message has a malformed name");
    const std::unique_ptr<ldns_rdf, RdfDeleter> rdf(raw);
    const std::string_view labels(reinterpret_cast<const char*>(ldns_rdf_data(raw)), ldns_rdf_size(raw));
    Name name{.text = text_of_name(labels), .compressed = end - position_ != labels.size()};
    position_ = end;
    return name;
}

void put_u16(std::string& out, std::uint16_t value) {
    out.push_back(static_cast<char>(value >> 8));
    out.push_back(static_cast<char>(value & 0xff));
}

void put_u32(std::string& out, std::uint32_t value) {
    put_u16(out, static_cast<std::uint16_t>(value >> 16));
    put_u16(out, static_cast<std::uint16_t>(value & 0xffff));
}

void put_header(std::string& out, const Header& header) {
    for (std::uint16_t field :
         {header.id, header.flags, header.questions, header.answers, header.authorities, header.additionals})
        put_u16(out, field);
}

void put_name(std::string& out, std::string_view name) {
    while (!name.empty()) {
        const std::string_view label = name.substr(0, name.find('.'));
        out.push_back(static_cast<char>(label.size()));
        out.append(label);
        name.remove_prefix(std::min(label.size() + 1, name.size()));
    }
    out.push_back('\0');
}

void set_u16(std::string& out, std::size_t at, std::uint16_t value) {
    out[at] = static_cast<char>(value >> 8);
    out[at + 1] = static_cast<char>(value & 0xff);
}

}  // namespace gb::egress::wire
