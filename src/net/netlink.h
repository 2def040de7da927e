// SPDX-License-Identifier: Apache-2.0
// Netlink messages, netlink(7): built, sent, answered. Speaks to one kernel subsystem in one network
// namespace.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <linux/netlink.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb::net {

// One message under construction: a netlink header, the header of the subsystem, attributes.
class NetlinkMessage {
  public:
    // `header`: struct ifinfomsg, rtmsg, nfgenmsg and so on.
    template <class Header>
    NetlinkMessage(std::uint16_t type, unsigned flags, const Header& header) : NetlinkMessage(type, flags) {
        append(&header, sizeof header);
    }

    NetlinkMessage& put(int attribute, std::string_view bytes);
    NetlinkMessage& put_string(int attribute, std::string_view text);  // with its closing zero
    NetlinkMessage& put_u8(int attribute, std::uint8_t value);
    NetlinkMessage& put_u16(int attribute, std::uint16_t value);
    NetlinkMessage& put_u32(int attribute, std::uint32_t value);
    NetlinkMessage& put_be16(int attribute, std::uint16_t value);  // netfilter's numbers are in network order
    NetlinkMessage& put_be32(int attribute, std::uint32_t value);

    // Attributes put until end() are inside this one.
    NetlinkMessage& begin(int attribute);
    NetlinkMessage& end();
    // A struct in front of nested attributes, as VETH_INFO_PEER has.
    void append(const void* data, std::size_t size);

    // The message with this sequence number; all nests must be ended.
    std::string_view finish(std::uint32_t sequence);
    [[nodiscard]] unsigned flags() const { return flags_; }

  private:
    NetlinkMessage(std::uint16_t type, unsigned flags);
    std::string data_;
    std::vector<std::size_t> open_;
    unsigned flags_;
};

// One attribute as received. Valid as long as the buffer it points into.
struct Attribute {
    int type = 0;
    std::string_view data;
    [[nodiscard]] std::uint8_t u8() const { return data.empty() ? 0 : static_cast<std::uint8_t>(data[0]); }
    [[nodiscard]] std::uint32_t u32() const;
    [[nodiscard]] std::uint16_t be16() const;
    [[nodiscard]] std::uint32_t be32() const;
    [[nodiscard]] std::uint64_t be64() const;
    [[nodiscard]] std::string_view text() const;  // up to the first zero
};

// The attributes of `data`, up to the first that is damaged. Safe on any bytes.
std::vector<Attribute> parse_attributes(std::string_view data);
std::optional<Attribute> find_attribute(std::string_view data, int type);

struct Message {
    std::uint16_t type = 0;
    std::uint32_t sequence = 0;
    std::string_view body;  // what follows the netlink header
};
// The messages of one datagram, up to the first that is damaged. Safe on any bytes.
std::vector<Message> parse_messages(std::string_view datagram);

class NetlinkSocket {
  public:
    // `protocol`: NETLINK_ROUTE or NETLINK_NETFILTER. It stays in the namespace that the calling thread is in
    // now, and holds that namespace alive.
    static Result<NetlinkSocket> open(int protocol);

    // Sends and waits for the kernel's acknowledgement. `what` names the operation in the error.
    Status request(NetlinkMessage& message, std::string_view what);
    // The same, all or nothing, for messages of one nfnetlink transaction (the markers are added here).
    Status transaction(std::uint16_t subsystem, std::span<NetlinkMessage> messages, std::string_view what);
    // Calls `each` with every answer.
    Status dump(NetlinkMessage& message, std::string_view what,
                const std::function<void(const Message&)>& each);

    [[nodiscard]] int fd() const { return fd_.get(); }
    // For what the kernel sends unasked: a receive buffer of that many bytes, if it may be; then the socket
    // itself, non-blocking, when it is to be read only.
    void set_receive_buffer(int bytes);
    Result<UniqueFd> release_for_reading();

  private:
    explicit NetlinkSocket(UniqueFd fd) : fd_(std::move(fd)) {}
    Status send(std::string_view bytes, std::string_view what);
    // Reads until `left` acknowledgements or the end of a dump has come; the first error wins.
    Status collect(std::uint32_t first_sequence, std::size_t left, bool is_dump, std::string_view what,
                   const std::function<void(const Message&)>& each);

    UniqueFd fd_;
    std::uint32_t sequence_ = 1;
    std::string buffer_;
};

}  // namespace gb::net
