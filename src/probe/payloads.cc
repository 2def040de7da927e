// SPDX-License-Identifier: Apache-2.0
#include "probe/payloads.h"

#include <array>

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <netinet/ip_icmp.h>

#include <resolv.h>

#include "base/internet_checksum.h"

namespace gb::probe {
namespace {

constexpr std::size_t kQuicPacket = 1200;

void put(std::string& out, std::size_t at, std::uint16_t value) {
    out[at] = static_cast<char>(value >> 8U);
    out[at + 1] = static_cast<char>(value & 0xffU);
}

}  // namespace

std::string time_request() {
    std::string out(48, '\0');
    out[0] = 0x23;  // version 4, from a client
    return out;
}

std::string quic_packet() {
    std::string out(kQuicPacket, '\0');
    out[0] = static_cast<char>(0xc0);
    for (std::size_t i = 1; i <= 4; ++i) out[i] = 0x1a;
    out[5] = 8;   // destination connection id
    out[14] = 8;  // source connection id
    return out;
}

std::string echo_request(std::uint16_t id) {
    std::string out(8 + 16, 'g');
    out[0] = ICMP_ECHO;
    out[1] = 0;
    put(out, 2, 0);
    put(out, 4, id);
    put(out, 6, 1);
    put(out, 2, internet_checksum(add_words(0, out.data(), out.size())));
    return out;
}

bool is_echo_reply(std::string_view packet, std::uint16_t id) {
    if (packet.empty()) return false;
    const std::size_t header = (static_cast<std::uint8_t>(packet[0]) & 0xfU) * 4U;
    if (packet.size() < header + 8) return false;
    packet.remove_prefix(header);
    return packet[0] == ICMP_ECHOREPLY && static_cast<std::uint8_t>(packet[4]) == id >> 8U &&
           static_cast<std::uint8_t>(packet[5]) == (id & 0xffU);
}

std::string dns_question(std::string_view name, std::uint16_t id) {
    std::array<unsigned char, 512> buffer{};
    const int size = ::res_mkquery(ns_o_query, std::string(name).c_str(), ns_c_in, ns_t_a, nullptr, 0,
                                   nullptr, buffer.data(), static_cast<int>(buffer.size()));
    if (size <= 0) return "";
    std::string out(reinterpret_cast<const char*>(buffer.data()), static_cast<std::size_t>(size));
    put(out, 0, id);
    return out;
}

DnsAnswer read_dns_answer(std::string_view packet, std::uint16_t id) {
    DnsAnswer out;
    ns_msg message;
    if (::ns_initparse(reinterpret_cast<const unsigned char*>(packet.data()), static_cast<int>(packet.size()),
                       &message) != 0 ||
        ns_msg_id(message) != id || ns_msg_getflag(message, ns_f_qr) == 0)
        return out;
    out.good = true;
    out.code = ns_msg_getflag(message, ns_f_rcode);
    for (int i = 0; i < ns_msg_count(message, ns_s_an); ++i) {
        ns_rr record;
        if (::ns_parserr(&message, ns_s_an, i, &record) != 0) break;
        if (ns_rr_type(record) != ns_t_a || ns_rr_rdlen(record) != 4) continue;
        std::array<char, INET_ADDRSTRLEN> text{};
        if (::inet_ntop(AF_INET, ns_rr_rdata(record), text.data(), text.size()) != nullptr)
            out.addresses.emplace_back(text.data());
    }
    return out;
}

}  // namespace gb::probe
