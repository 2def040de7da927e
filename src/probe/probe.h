// SPDX-License-Identifier: Apache-2.0
// One attempt to get out, made with real sockets where this runs: in a sandbox, and on its host as a control.
// Whether something is open is said by what comes back, never by connect() alone: a proxy accepts first and
// judges then.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gb::probe {

enum class Way {
    tcp,      // connects; open unless it is refused, cut or answered by nobody
    http,     // a request on TCP with `name` (or the address) as its host; open when it is answered
    tls,      // a handshake with `name` as its SNI, without one when it is empty; open when it is done
    udp,      // a datagram that time servers and echoes answer
    quic,     // a packet of a version that there is not (RFC 8999): every QUIC server answers
    icmp,     // echo (RFC 792)
    dns_udp,  // the addresses of `name`, asked of `address`; open when there are some
    dns_tcp,
    raw,      // a packet of IP protocol `port`; what comes back says only that it was refused
    spoofed,  // a datagram with a source address that is not ours
    ipv6,     // TCP over IPv6, and a frame of it where there is no such network
};

struct Probe {
    Way way = Way::tcp;
    std::string
        address;  // of IPv4, or of IPv6 for ipv6; empty for http and tls: that of `name`, by `resolver`
    std::uint16_t port = 0;
    std::string name;
    std::string resolver;
    bool operator==(const Probe&) const = default;
};

enum class State {
    open,
    closed,
    sent,       // it left this program, and nothing would tell if it arrived
    not_tried,  // it cannot be tried here
};

struct Outcome {
    State state = State::not_tried;
    std::string detail;   // for people, one line
    std::string address;  // that was tried, where a name was looked up
    bool operator==(const Outcome&) const = default;
};

// Blocking, for `patience` at most in each of its steps.
Outcome attempt(const Probe& probe, std::chrono::milliseconds patience);
// Side by side, in their order.
std::vector<Outcome> attempt_all(std::span<const Probe> probes, std::chrono::milliseconds patience);

std::string_view to_string(Way way);
std::string_view to_string(State state);

// As an argument of glovebox-probe.
std::string format_probe(const Probe& probe);
Result<Probe> parse_probe(std::string_view text);
// A line that glovebox-probe prints, without its end. A guest may print what it likes: nothing when it is not
// exactly such a line, and no character that moves a terminal's cursor gets through.
std::string format_outcome(std::size_t index, const Outcome& outcome);
struct NumberedOutcome {
    std::size_t index = 0;  // of the probe
    Outcome outcome;
};
std::optional<NumberedOutcome> parse_outcome(std::string_view line);

}  // namespace gb::probe
