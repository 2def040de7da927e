// SPDX-License-Identifier: Apache-2.0
// What probes send, and what they make of answers that are no streams.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gb::probe {

std::string time_request();  // SNTP, RFC 4330
std::string quic_packet();   // a long header with a reserved version, of the least size (RFC 9000 14.1, 15)
std::string echo_request(std::uint16_t id);                     // ICMP, with its checksum
bool is_echo_reply(std::string_view packet, std::uint16_t id);  // with its IP header, as raw sockets see it

std::string dns_question(std::string_view name, std::uint16_t id);  // for addresses; empty: it is no name
struct DnsAnswer {
    bool good = false;  // an answer to that question
    int code = 0;       // RCODE, RFC 1035 4.1.1
    std::vector<std::string> addresses;
};
DnsAnswer read_dns_answer(std::string_view packet, std::uint16_t id);

}  // namespace gb::probe
