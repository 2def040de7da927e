// SPDX-License-Identifier: Apache-2.0
// Messages of the kernel's connection tracking: any bytes, and messages whose parts are of the right kind, so
// that more than the first check is reached.
#include <cstdint>

#include <arpa/inet.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>

#include <fuzzer/FuzzedDataProvider.h>

#include "net/conntrack_message.h"
#include "net/netlink.h"
#include "net/slot_rules.h"

namespace gb::net {
namespace {

// A value of the right size, or something else in its place.
void put_any(NetlinkMessage& out, FuzzedDataProvider& data, int attribute, std::string value) {
    if (data.ConsumeProbability<float>() < 0.1F) value = data.ConsumeRandomLengthString(16);
    out.put(attribute, value);
}

std::string of_data(FuzzedDataProvider& data, std::size_t size) {
    return data.ConsumeBytesAsString(size);
}

std::string be32(std::uint32_t value) {
    value = htonl(value);
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string message(FuzzedDataProvider& data) {
    NetlinkMessage out(0, 0, nfgenmsg{.nfgen_family = AF_INET, .version = NFNETLINK_V0, .res_id = 0});
    out.begin(CTA_TUPLE_ORIG).begin(CTA_TUPLE_IP);
    put_any(out, data, CTA_IP_V4_SRC, be32(kGuestAddress.value));
    put_any(out, data, CTA_IP_V4_DST, of_data(data, 4));
    out.end().begin(CTA_TUPLE_PROTO);
    put_any(out, data, CTA_PROTO_NUM, of_data(data, 1));
    put_any(out, data, CTA_PROTO_SRC_PORT, of_data(data, 2));
    put_any(out, data, CTA_PROTO_DST_PORT, of_data(data, 2));
    put_any(out, data, CTA_PROTO_ICMP_TYPE, of_data(data, 1));
    out.end().end();
    put_any(out, data, CTA_STATUS, be32(IPS_CONFIRMED | IPS_SRC_NAT));
    put_any(out, data, CTA_MARK, be32(1));
    for (const int counters : {CTA_COUNTERS_ORIG, CTA_COUNTERS_REPLY}) {
        out.begin(counters);
        put_any(out, data, CTA_COUNTERS_BYTES, of_data(data, 8));
        out.end();
    }
    return std::string(out.finish(1).substr(sizeof(nlmsghdr)));
}

}  // namespace
}  // namespace gb::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    if (auto end = gb::net::parse_flow({reinterpret_cast<const char*>(bytes), size}))
        (void)gb::net::decision_line(*end);
    FuzzedDataProvider data(bytes, size);
    (void)gb::net::is_open_tcp({reinterpret_cast<const char*>(bytes), size});
    const std::string whole = gb::net::message(data);
    const auto cut = data.ConsumeIntegralInRange<std::size_t>(0, whole.size());
    for (const std::size_t length : {whole.size(), cut})
        if (auto end = gb::net::parse_flow(std::string_view(whole).substr(0, length)))
            (void)gb::net::decision_line(*end);
    return 0;
}
