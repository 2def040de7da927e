// SPDX-License-Identifier: Apache-2.0
// The pieces of a DNS message (RFC 1035 section 4): numbers and names, read from a stranger's bytes and
// written. For the files dns_* of this folder only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gb::egress::wire {

inline constexpr std::size_t kHeaderSize = 12;
inline constexpr std::uint16_t kClassIn = 1;

// The fixed head of every message. Flags are the second 16 bits as they are on the wire.
struct Header {
    std::uint16_t id = 0;
    std::uint16_t flags = 0;
    std::uint16_t questions = 0, answers = 0, authorities = 0, additionals = 0;

    [[nodiscard]] bool is_response() const { return (flags & kResponse) != 0; }
    [[nodiscard]] unsigned opcode() const { return (flags >> 11) & 0xf; }
    [[nodiscard]] unsigned rcode() const { return flags & 0xf; }

    static constexpr std::uint16_t kResponse = 0x8000, kTruncated = 0x0200, kRecursionDesired = 0x0100,
                                   kRecursionAvailable = 0x0080, kCheckingDisabled = 0x0010;
};

// Reads from front to back; every function fails instead of reading past the end.
class Reader {
  public:
    explicit Reader(std::string_view message) : message_(message) {}

    Result<std::uint16_t> u16();
    Result<std::uint32_t> u32();
    Result<Header> header();
    Status skip(std::size_t count);

    struct Name {
        // Lower case, labels joined with dots, no dot at the end, "" for the root. Nothing if a label holds
        // anything but ASCII letters, digits, '-' and '_': such a name is well formed, but no host's.
        std::optional<std::string> text;
        bool compressed = false;
    };
    Result<Name> name();

    [[nodiscard]] std::size_t position() const { return position_; }
    [[nodiscard]] bool at_end() const { return position_ == message_.size(); }
    [[nodiscard]] std::string_view message() const { return message_; }

  private:
    std::string_view message_;
    std::size_t position_ = 0;
};

// What the labels of canonical names are made of: what host names have, and '_', which services and keys
// begin with
// (_http._tcp, _dmarc).
constexpr bool is_name_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// The labels of an uncompressed name on the wire, as Reader::Name::text.
std::optional<std::string> text_of_name(std::string_view uncompressed);

void put_u16(std::string& out, std::uint16_t value);
void put_u32(std::string& out, std::uint32_t value);
void put_header(std::string& out, const Header& header);
void put_name(std::string& out, std::string_view name);  // canonical text, see is_dns_name()
void set_u16(std::string& out, std::size_t at, std::uint16_t value);

}  // namespace gb::egress::wire
