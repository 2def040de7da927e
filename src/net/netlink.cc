// SPDX-License-Identifier: Apache-2.0
#include "net/netlink.h"

#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#include <fcntl.h>

namespace gb::net {
namespace {

constexpr std::size_t kBuffer = 32768;  // the kernel never makes larger pieces of a dump

constexpr std::size_t aligned(std::size_t size) {
    return (size + 3) & ~std::size_t{3};
}

template <class T>
T load(std::string_view data) {
    T value{};
    if (data.size() >= sizeof value) std::memcpy(&value, data.data(), sizeof value);
    return value;
}

template <class T>
std::string_view bytes_of(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

NetlinkMessage::NetlinkMessage(std::uint16_t type, unsigned flags) : flags_(flags | NLM_F_REQUEST) {
    nlmsghdr header{};
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<std::uint16_t>(flags_);
    append(&header, sizeof header);
}

void NetlinkMessage::append(const void* data, std::size_t size) {
    data_.append(static_cast<const char*>(data), size);
    data_.resize(aligned(data_.size()), '\0');
}

NetlinkMessage& NetlinkMessage::put(int attribute, std::string_view bytes) {
    nlattr header{.nla_len = static_cast<std::uint16_t>(sizeof(nlattr) + bytes.size()),
                  .nla_type = static_cast<std::uint16_t>(attribute)};
    append(&header, sizeof header);
    append(bytes.data(), bytes.size());
    return *this;
}

NetlinkMessage& NetlinkMessage::put_string(int attribute, std::string_view text) {
    return put(attribute, std::string(text) + '\0');
}
NetlinkMessage& NetlinkMessage::put_u8(int attribute, std::uint8_t value) {
    return put(attribute, bytes_of(value));
}
NetlinkMessage& NetlinkMessage::put_u16(int attribute, std::uint16_t value) {
    return put(attribute, bytes_of(value));
}
NetlinkMessage& NetlinkMessage::put_u32(int attribute, std::uint32_t value) {
    return put(attribute, bytes_of(value));
}
NetlinkMessage& NetlinkMessage::put_be16(int attribute, std::uint16_t value) {
    return put_u16(attribute, htons(value));
}
NetlinkMessage& NetlinkMessage::put_be32(int attribute, std::uint32_t value) {
    return put_u32(attribute, htonl(value));
}

NetlinkMessage& NetlinkMessage::begin(int attribute) {
    open_.push_back(data_.size());
    return put(attribute | NLA_F_NESTED, {});
}

NetlinkMessage& NetlinkMessage::end() {
    std::size_t at = open_.back();
    open_.pop_back();
    auto length = static_cast<std::uint16_t>(data_.size() - at);
    std::memcpy(data_.data() + at, &length, sizeof length);  // nla_len is the first field
    return *this;
}

std::string_view NetlinkMessage::finish(std::uint32_t sequence) {
    auto header = load<nlmsghdr>(data_);
    header.nlmsg_len = static_cast<std::uint32_t>(data_.size());
    header.nlmsg_seq = sequence;
    std::memcpy(data_.data(), &header, sizeof header);
    return data_;
}

std::uint32_t Attribute::u32() const {
    return load<std::uint32_t>(data);
}
std::uint16_t Attribute::be16() const {
    return ntohs(load<std::uint16_t>(data));
}
std::uint32_t Attribute::be32() const {
    return ntohl(load<std::uint32_t>(data));
}
std::uint64_t Attribute::be64() const {
    return std::uint64_t{be32()} << 32 | ntohl(load<std::uint32_t>(data.size() >= 8 ? data.substr(4) : ""));
}
std::string_view Attribute::text() const {
    return data.substr(0, data.find('\0'));
}

std::vector<Attribute> parse_attributes(std::string_view data) {
    std::vector<Attribute> out;
    while (data.size() >= sizeof(nlattr)) {
        auto header = load<nlattr>(data);
        if (header.nla_len < sizeof(nlattr) || header.nla_len > data.size()) break;
        out.push_back(
            {header.nla_type & NLA_TYPE_MASK, data.substr(sizeof(nlattr), header.nla_len - sizeof(nlattr))});
        data.remove_prefix(std::min(data.size(), aligned(header.nla_len)));
    }
    return out;
}

std::optional<Attribute> find_attribute(std::string_view data, int type) {
    for (const Attribute& attribute : parse_attributes(data))
        if (attribute.type == type) return attribute;
    return std::nullopt;
}

std::vector<Message> parse_messages(std::string_view datagram) {
    std::vector<Message> out;
    while (datagram.size() >= sizeof(nlmsghdr)) {
        auto header = load<nlmsghdr>(datagram);
        if (header.nlmsg_len < sizeof(nlmsghdr) || header.nlmsg_len > datagram.size()) break;
        out.push_back({header.nlmsg_type, header.nlmsg_seq,
                       datagram.substr(sizeof(nlmsghdr), header.nlmsg_len - sizeof(nlmsghdr))});
        datagram.remove_prefix(std::min(datagram.size(), aligned(header.nlmsg_len)));
    }
    return out;
}

Result<NetlinkSocket> NetlinkSocket::open(int protocol) {
    UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
    if (!fd) return fail_errno("open netlink socket");
    timeval limit{.tv_sec = 10, .tv_usec = 0};  // the kernel answers at once; this bounds the impossible
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return NetlinkSocket(std::move(fd));
}

void NetlinkSocket::set_receive_buffer(int bytes) {
    if (::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
        ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

Result<UniqueFd> NetlinkSocket::release_for_reading() {
    if (::fcntl(fd_.get(), F_SETFL, O_NONBLOCK) != 0) return fail_errno("make netlink socket non-blocking");
    return std::move(fd_);
}

Status NetlinkSocket::send(std::string_view bytes, std::string_view what) {
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    ssize_t n = ::sendto(fd_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&kernel),
                         sizeof kernel);
    if (n != static_cast<ssize_t>(bytes.size())) return fail_errno(what);
    return {};
}

Status NetlinkSocket::collect(std::uint32_t first_sequence, std::size_t left, bool is_dump,
                              std::string_view what, const std::function<void(const Message&)>& each) {
    buffer_.resize(kBuffer);
    int failure = 0;
    while (left > 0) {
        ssize_t n = ::recv(fd_.get(), buffer_.data(), buffer_.size(), 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(what);
        for (const Message& message : parse_messages({buffer_.data(), static_cast<std::size_t>(n)})) {
            if (message.sequence < first_sequence) continue;  // the rest of an earlier request that failed
            if (message.type == NLMSG_ERROR || message.type == NLMSG_DONE) {
                int error = -load<int>(message.body);
                if (failure == 0 && error != 0) failure = error;
                --left;
                if (error != 0 || is_dump) left = 0;
            } else if (each) {
                each(message);
            }
        }
    }
    if (failure != 0) return fail_errno(failure, what);
    return {};
}

Status NetlinkSocket::request(NetlinkMessage& message, std::string_view what) {
    std::uint32_t sequence = sequence_++;
    GB_TRY(send(message.finish(sequence), what));
    return collect(sequence, 1, false, what, {});
}

Status NetlinkSocket::dump(NetlinkMessage& message, std::string_view what,
                           const std::function<void(const Message&)>& each) {
    std::uint32_t sequence = sequence_++;
    GB_TRY(send(message.finish(sequence), what));
    return collect(sequence, 1, true, what, each);
}

Status NetlinkSocket::transaction(std::uint16_t subsystem, std::span<NetlinkMessage> messages,
                                  std::string_view what) {
    nfgenmsg marker{.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(subsystem)};
    std::uint32_t first = sequence_;
    std::string bytes(NetlinkMessage(NFNL_MSG_BATCH_BEGIN, 0, marker).finish(sequence_++));
    std::size_t acknowledged = 0;
    for (NetlinkMessage& message : messages) {
        bytes += message.finish(sequence_++);
        if ((message.flags() & NLM_F_ACK) != 0) ++acknowledged;
    }
    bytes += NetlinkMessage(NFNL_MSG_BATCH_END, 0, marker).finish(sequence_++);
    GB_TRY(send(bytes, what));
    return collect(first, acknowledged, false, what, {});
}

}  // namespace gb::net
