// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/trust_bundle.h"

#include <algorithm>
#include <optional>

#include "base/crypto.h"

namespace gb::agent {
namespace {

constexpr std::string_view kBeginCertificate = "-----BEGIN CERTIFICATE-----";
constexpr std::string_view kEndCertificate = "-----END CERTIFICATE-----";
constexpr std::string_view kBeginBlock = "# glovebox: authority of this sandbox's header rules, begin";
constexpr std::string_view kEndBlock = "# glovebox: authority of this sandbox's header rules, end";
constexpr std::size_t kLongestPem = 16384;
constexpr std::size_t kLongestLine = 76;

// Takes the first line off, without its ending.
std::string_view take_line(std::string_view& text) {
    const std::size_t end = std::min(text.size(), text.find('\n'));
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    return line;
}

bool is_base64_line(std::string_view line) {
    return !line.empty() && line.size() <= kLongestLine && std::ranges::all_of(line, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' ||
               c == '/' || c == '=';
    });
}

// As certificate_length(); the lines between the borders are added to `body`.
std::size_t read_certificate(std::string_view text, std::string* body) {
    std::string_view rest = text;
    if (take_line(rest) != kBeginCertificate) return 0;
    for (bool empty = true; !rest.empty(); empty = false) {
        const std::string_view line = take_line(rest);
        if (line == kEndCertificate) return empty ? 0 : text.size() - rest.size();
        if (!is_base64_line(line)) return 0;
        if (body != nullptr) body->append(line);
    }
    return 0;
}

bool is_hash(std::string_view text) {
    return text.size() == 8 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// How much at the beginning of `text`, which is the beginning of a line, is ours.
std::size_t length_of_ours(std::string_view text, const std::vector<std::string>& known) {
    std::string_view rest = text;
    const std::string_view line = take_line(rest);
    if (line == kBeginBlock) {
        // Somebody may have changed what is inside: only what is whole goes as a whole.
        if (const std::size_t length = certificate_length(rest); length > 0) {
            std::string_view after = rest.substr(length);
            if (take_line(after) == kEndBlock) return text.size() - after.size();
        }
        return text.size() - rest.size();
    }
    if (line == kEndBlock) return text.size() - rest.size();
    const std::size_t length = certificate_length(text);
    std::string_view certificate = text.substr(0, length);
    if (certificate.ends_with('\n')) certificate.remove_suffix(1);
    const bool is_known = length > 0 && std::ranges::any_of(known, [&](std::string_view pem) {
                              if (pem.ends_with('\n')) pem.remove_suffix(1);
                              return pem == certificate;
                          });
    return is_known ? length : 0;
}

}  // namespace

Result<Authority> make_authority(std::string_view ca_bundle, std::string_view ca_hash) {
    if (ca_bundle.empty()) return Authority{};
    std::string body;
    const bool whole =
        ca_bundle.size() <= kLongestPem && read_certificate(ca_bundle, &body) == ca_bundle.size();
    const std::optional<std::string> bytes = whole ? base64_decode(body) : std::nullopt;
    constexpr char kSequence = 0x30;  // of ASN.1: how every certificate begins
    if (!bytes || !bytes->starts_with(kSequence))
        return fail(ErrorCode::invalid_argument, "caBundle: must be one certificate in PEM form");
    if (!is_hash(ca_hash))
        return fail(ErrorCode::invalid_argument, "caHash: must be 8 hexadecimal digits in lower case");
    Authority authority{std::string(ca_bundle), std::string(ca_hash)};
    if (!authority.pem.ends_with('\n')) authority.pem += '\n';
    return authority;
}

std::size_t certificate_length(std::string_view text) {
    return read_certificate(text, nullptr);
}

std::string without_authority(std::string_view bundle, const std::vector<std::string>& known) {
    std::string out;
    out.reserve(bundle.size());
    while (!bundle.empty()) {
        if (const std::size_t ours = length_of_ours(bundle, known); ours > 0) {
            bundle.remove_prefix(ours);
            continue;
        }
        std::string_view rest = bundle;
        take_line(rest);
        out.append(bundle.substr(0, bundle.size() - rest.size()));
        bundle = rest;
    }
    return out;
}

std::string with_authority(std::string_view bundle, std::string_view pem,
                           const std::vector<std::string>& known) {
    std::string out = without_authority(bundle, known);
    if (!out.empty() && !out.ends_with('\n')) out += '\n';
    return out.append(kBeginBlock).append("\n").append(pem).append(kEndBlock).append("\n");
}

}  // namespace gb::agent
