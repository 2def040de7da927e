// SPDX-License-Identifier: Apache-2.0
#include "net/nft.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <fmt/format.h>

#include "base/subprocess.h"

namespace gb::net {
namespace {

// An element is at most 32 bytes and a range has two; a nested attribute holds 64 KiB.
constexpr std::size_t kRangesPerMessage = 512;

NetlinkMessage nft_message(int type, unsigned flags, NftFamily family = NftFamily::inet) {
    nfgenmsg header{.nfgen_family = static_cast<std::uint8_t>(family), .version = NFNETLINK_V0, .res_id = 0};
    return {static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type), flags, header};
}

void put_element(NetlinkMessage& message, std::uint32_t key, bool is_end) {
    message.begin(NFTA_LIST_ELEM).begin(NFTA_SET_ELEM_KEY).put_be32(NFTA_DATA_VALUE, key).end();
    if (is_end) message.put_be32(NFTA_SET_ELEM_FLAGS, NFT_SET_ELEM_INTERVAL_END);
    message.end();
}

}  // namespace

Status apply_rules(std::string_view rules) {
    RunOptions options;
    options.stdin_data = rules;
    options.timeout = {std::chrono::seconds(30), std::chrono::minutes(10)};
    GB_TRY(run_checked({std::string(kNftProgram), "-f", "-"}, options));
    return {};
}

Result<Nft> Nft::open() {
    GB_TRY_ASSIGN(NetlinkSocket socket, NetlinkSocket::open(NETLINK_NETFILTER));
    return Nft(std::move(socket));
}

Status Nft::replace_elements(std::string_view table, std::span<const SetContents> sets) {
    std::vector<NetlinkMessage> messages;
    for (const SetContents& contents : sets) {
        NetlinkMessage flush = nft_message(NFT_MSG_DELSETELEM, NLM_F_ACK);
        flush.put_string(NFTA_SET_ELEM_LIST_TABLE, table).put_string(NFTA_SET_ELEM_LIST_SET, contents.set);
        messages.push_back(std::move(flush));
        std::vector<Range> ranges = merge(contents.blocks);
        for (std::size_t at = 0; at < ranges.size(); at += kRangesPerMessage) {
            NetlinkMessage add = nft_message(NFT_MSG_NEWSETELEM, NLM_F_ACK | NLM_F_CREATE);
            add.put_string(NFTA_SET_ELEM_LIST_TABLE, table).put_string(NFTA_SET_ELEM_LIST_SET, contents.set);
            add.begin(NFTA_SET_ELEM_LIST_ELEMENTS);
            for (const Range& range :
                 std::span(ranges).subspan(at, std::min(kRangesPerMessage, ranges.size() - at))) {
                put_element(add, range.first.value, false);
                // The end is the first address behind; a range up to the last address has none.
                if (range.last.value != UINT32_MAX) put_element(add, range.last.value + 1, true);
            }
            add.end();
            messages.push_back(std::move(add));
        }
    }
    return socket_.transaction(NFNL_SUBSYS_NFTABLES, messages,
                               fmt::format("replace sets of table {}", table));
}

Result<std::uint64_t> Nft::read_counter(NftFamily family, std::string_view table, std::string_view counter) {
    NetlinkMessage message = nft_message(NFT_MSG_GETOBJ, NLM_F_ACK, family);
    message.put_string(NFTA_OBJ_TABLE, table).put_string(NFTA_OBJ_NAME, counter);
    message.put_be32(NFTA_OBJ_TYPE, NFT_OBJECT_COUNTER);
    std::uint64_t packets = 0;
    GB_TRY(socket_.dump(
        message, fmt::format("read counter {} of table {}", counter, table), [&](const Message& answer) {
            if (answer.body.size() < sizeof(nfgenmsg)) return;
            auto data = find_attribute(answer.body.substr(sizeof(nfgenmsg)), NFTA_OBJ_DATA);
            auto value = data ? find_attribute(data->data, NFTA_COUNTER_PACKETS) : std::nullopt;
            if (value) packets = value->be64();
        }));
    return packets;
}

Result<bool> Nft::delete_table(std::string_view table) {
    std::vector<NetlinkMessage> messages;
    messages.push_back(nft_message(NFT_MSG_DELTABLE, NLM_F_ACK));
    messages.back().put_string(NFTA_TABLE_NAME, table);
    Status status =
        socket_.transaction(NFNL_SUBSYS_NFTABLES, messages, fmt::format("delete table {}", table));
    if (status) return true;
    if (status.error().code == ErrorCode::not_found) return false;
    return std::unexpected(status.error());
}

}  // namespace gb::net
