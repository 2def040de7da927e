// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_checks.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <optional>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "base/openssl_ptr.h"
#include "egress/upstream.h"
#include "net/cidr.h"

namespace gb::cli {
namespace {

namespace json = boost::json;
constexpr std::int64_t kDayMs = 24LL * 3'600'000;
constexpr std::int64_t kRenewDays = 14;

using Certificate = std::unique_ptr<X509, OpenSslFree<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, OpenSslFree<EVP_PKEY_free>>;

// A key with a passphrase is not asked for it: the server has nobody to ask either.
int no_passphrase(char*, int, int, void*) {
    return -1;
}

std::optional<std::int64_t> unix_ms(const ASN1_TIME* time) {
    std::tm parts{};
    if (ASN1_TIME_to_tm(time, &parts) != 1) return std::nullopt;
    return std::int64_t{::timegm(&parts)} * 1000;
}

const json::value* member(const json::value& value, std::string_view name) {
    return value.is_object() ? value.get_object().if_contains(name) : nullptr;
}

std::string text_at(const json::value& value, std::string_view name) {
    const json::value* found = member(value, name);
    return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

std::string chain_name(const json::value& value, std::string_view chain_field) {
    return fmt::format("{} {} {}", text_at(value, "family"), text_at(value, "table"),
                       text_at(value, chain_field));
}

// A rule that drops whatever reaches it.
bool drops_everything(const json::value& rule) {
    const json::value* steps = member(rule, "expr");
    if (steps == nullptr || !steps->is_array()) return false;
    bool drops = false;
    for (const json::value& step : steps->get_array()) {
        if (member(step, "drop") != nullptr || member(step, "reject") != nullptr)
            drops = true;
        else if (member(step, "counter") == nullptr && member(step, "log") == nullptr)
            return false;
    }
    return drops;
}

}  // namespace

Check judge_certificate(std::string_view chain_pem, std::string_view key_pem, std::string_view domain,
                        std::int64_t now_ms) {
    auto bad = [](std::string text) { return Check{"certificate", Finding::bad, std::move(text)}; };
    const Certificate certificate(
        PEM_read_bio_X509(bio_of(chain_pem).get(), nullptr, &no_passphrase, nullptr));
    const Key key(PEM_read_bio_PrivateKey(bio_of(key_pem).get(), nullptr, &no_passphrase, nullptr));
    const bool matches = certificate && key && X509_check_private_key(certificate.get(), key.get()) == 1;
    ERR_clear_error();
    if (!certificate) return bad("tls.certificate holds no certificate in PEM form");
    if (!key) return bad("tls.key holds no private key in PEM form, or one that asks for a passphrase");
    if (!matches)
        return bad(
            "tls.key does not belong to tls.certificate: the first certificate must be the server's own");
    const auto begins = unix_ms(X509_get0_notBefore(certificate.get())),
               ends = unix_ms(X509_get0_notAfter(certificate.get()));
    if (!begins || !ends) return bad("tls.certificate says no time that can be read");
    if (*begins > now_ms)
        return bad(
            fmt::format("tls.certificate is valid from {} on only; is the clock right?", rfc3339(*begins)));
    if (*ends <= now_ms)
        return bad(fmt::format("tls.certificate has expired at {}: renew it", rfc3339(*ends)));
    const std::int64_t days = (*ends - now_ms) / kDayMs;
    for (const std::string& name : {fmt::format("3000-example.{}", domain), fmt::format("api.{}", domain)})
        if (X509_check_host(certificate.get(), name.data(), name.size(), 0, nullptr) != 1)
            return bad(fmt::format("tls.certificate is not for {}: get one for *.{}", name, domain));
    if (days < kRenewDays) return bad(fmt::format("tls.certificate expires in {} days: renew it", days));
    return {"certificate", Finding::good, fmt::format("for *.{}, expires in {} days", domain, days)};
}

Result<std::vector<std::string>> dropping_forward_chains(std::string_view ruleset_json) {
    boost::system::error_code ec;
    const json::value value = json::parse(json::string_view(ruleset_json.data(), ruleset_json.size()), ec);
    const json::value* list = ec ? nullptr : member(value, "nftables");
    if (list == nullptr || !list->is_array())
        return fail(ErrorCode::internal, "nft's list of rules cannot be read");
    std::vector<std::string> forward, out;
    for (const json::value& item : list->get_array()) {
        const json::value* chain = member(item, "chain");
        if (chain == nullptr || text_at(*chain, "hook") != "forward" ||
            text_at(*chain, "table").starts_with("glovebox_"))
            continue;
        forward.push_back(chain_name(*chain, "name"));
        if (text_at(*chain, "policy") == "drop") out.push_back(forward.back());
    }
    for (const json::value& item : list->get_array()) {
        const json::value* rule = member(item, "rule");
        if (rule == nullptr || !drops_everything(*rule)) continue;
        std::string name = chain_name(*rule, "chain");
        if (std::ranges::find(forward, name) != forward.end() && std::ranges::find(out, name) == out.end())
            out.push_back(std::move(name));
    }
    return out;
}

Check judge_unlisted_rules(int exit_code, const std::string& said) {
    if (exit_code <= 128) return {"firewall", Finding::note, fmt::format("nft does not list the rules: {}", said)};
    return {"firewall", Finding::bad,
            "nft crashes on the rules that this machine has, so no sandbox can start: a newer nft, perhaps in a container that "
            "shares this network, has made a table that this one cannot read. Remove it with the program that made it"};
}

Check judge_forwarding(const Result<std::vector<std::string>>& chains) {
    if (!chains) return {"firewall", Finding::note, chains.error().message};
    if (chains->empty()) return {"firewall", Finding::good, "no other table drops forwarded packets"};
    std::string names;
    for (const std::string& name : *chains) names += (names.empty() ? "" : ", ") + name;
    return {"firewall", Finding::note,
            fmt::format("{} drops forwarded packets that no rule accepts; if sandboxes cannot reach the "
                        "network: nft insert "
                        "rule {} iifname \"gb*\" accept, and the same with oifname",
                        names, chains->front())};
}

Check judge_conntrack(std::uint64_t most, std::uint64_t used) {
    constexpr std::uint64_t kLeast = 65'536, kEnough = 262'144;  // a sandbox may have 2,500
    const std::string text = fmt::format("{} of {} connections are followed", used, most);
    const std::string advice =
        fmt::format("; raise it with: sysctl -w net.netfilter.nf_conntrack_max={}", kEnough);
    if (used > most / 10 * 9)
        return {"conntrack", Finding::bad, text + ", new ones are about to be dropped" + advice};
    if (most < kLeast) return {"conntrack", Finding::bad, text + ", too few for many sandboxes" + advice};
    if (most < kEnough) return {"conntrack", Finding::note, text + advice};
    return {"conntrack", Finding::good, text};
}

Check judge_open_files(std::uint64_t soft, std::uint64_t hard) {
    constexpr std::uint64_t kLeast = 4'096,
                            kEnough = 65'536;  // a proxied connection has two, a sandbox about ten
    const std::string text = fmt::format("{} at once (now {}; the server raises it)", hard, soft);
    const std::string advice =
        fmt::format("; raise it with LimitNOFILE={0} in the service, or ulimit -n {0}", kEnough);
    if (hard < kLeast)
        return {"open files", hard < 1024 ? Finding::bad : Finding::note,
                text + ", few connections" + advice};
    if (hard < kEnough) return {"open files", Finding::note, text + advice};
    return {"open files", Finding::good, text};
}

Check judge_space(std::string name, const Space& space, std::uint64_t needed_gib) {
    constexpr std::uint64_t kLeastInodes = 10'000;
    const std::uint64_t gib = space.free_bytes >> 30;
    std::string text = fmt::format("{} GiB free for {}", gib, space.place);
    if (gib < needed_gib)
        return {std::move(name), Finding::bad, fmt::format("{}; it needs {} or more", text, needed_gib)};
    if (space.inodes != 0 && space.free_inodes < kLeastInodes)
        return {
            std::move(name), Finding::bad,
            fmt::format(
                "{}, but only {} inodes: no more files can be made; remove some, or use another file system",
                text, space.free_inodes)};
    return {std::move(name), Finding::good, text};
}

Check judge_clock(std::int64_t now_ms, std::int64_t built_ms, bool synchronised) {
    if (now_ms < built_ms)
        return {
            "clock", Finding::bad,
            fmt::format(
                "it is {} here, before this program was made: set the clock, or no certificate will be valid",
                rfc3339(now_ms))};
    if (!synchronised)
        return {"clock", Finding::note,
                "nothing keeps it right; lifetimes and bills follow it: apt-get install systemd-timesyncd"};
    return {"clock", Finding::good, "kept right by a time server"};
}

Check judge_resolvers(const std::vector<std::string>& configured, std::string_view resolv_conf) {
    std::vector<std::string> found = configured;
    if (!found.empty())
        return {"resolvers", Finding::good, fmt::format("{}, as configured", fmt::join(found, ", "))};
    for (const egress::DnsEndpoint& server : egress::upstreams_of_resolv_conf(resolv_conf))
        found.push_back(net::to_string(server.address));
    if (!found.empty())
        return {"resolvers", Finding::good, fmt::format("{}, of /etc/resolv.conf", fmt::join(found, ", "))};
    return {"resolvers", Finding::note,
            "no IPv4 nameserver in /etc/resolv.conf: sandboxes cannot look up names; name some in the "
            "configuration: "
            "[egress] resolvers = [\"1.1.1.1\"]"};
}

Check judge_port(std::string name, std::string_view address, int port, PortUse use) {
    const std::string what = fmt::format("{} port {}", address, port);
    switch (use) {
        case PortUse::free:
            return {std::move(name), Finding::good, what + " is free"};
        case PortUse::ours:
            return {std::move(name), Finding::good, what + " is held by the running server"};
        case PortUse::others:
            return {std::move(name), Finding::bad,
                    what + " is taken by another program: stop it, or set another port"};
        case PortUse::unusable:
            break;
    }
    return {std::move(name), Finding::bad,
            what + " cannot be listened on: is it an address of this machine, and are you root?"};
}

}  // namespace gb::cli
