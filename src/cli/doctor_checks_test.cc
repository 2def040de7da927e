// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_checks.h"

#include <memory>

#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/clock.h"

namespace gb::cli {
namespace {

constexpr std::int64_t kDayMs = 24LL * 3'600'000;

std::string text_of(BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    std::string out(data, static_cast<std::size_t>(size));
    BIO_free(bio);
    return out;
}

struct Pair {
    std::string certificate, key;
};

// A certificate of its own key, valid from `from_days` to `to_days` from now.
Pair make_pair(const std::string& names, int from_days, int to_days) {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* x509 = X509_new();
    X509_set_version(x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), from_days * 86'400L);
    X509_gmtime_adj(X509_getm_notAfter(x509), to_days * 86'400L);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str());
    X509_add_ext(x509, extension, -1);
    X509_EXTENSION_free(extension);
    X509_set_pubkey(x509, key);
    X509_sign(x509, key, EVP_sha256());
    BIO* certificate = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(certificate, x509);
    BIO* secret = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(secret, key, nullptr, nullptr, 0, nullptr, nullptr);
    X509_free(x509);
    EVP_PKEY_free(key);
    return {text_of(certificate), text_of(secret)};
}

TEST(Doctor, JudgesCertificates) {
    const std::string names = "DNS:box.example.com,DNS:*.box.example.com";
    const Pair good = make_pair(names, -1, 90), other = make_pair(names, -1, 90);
    auto judge = [](const Pair& pair) {
        return judge_certificate(pair.certificate, pair.key, "box.example.com", now_ms());
    };
    EXPECT_EQ(judge(good).finding, Finding::good) << judge(good).text;
    for (const auto& [pair, part] : std::initializer_list<std::pair<Pair, const char*>>{
             {{good.certificate, other.key}, "does not belong"},
             {{"nonsense", good.key}, "no certificate"},
             {{good.certificate, "nonsense"}, "no private key"},
             {{good.key, good.certificate}, "no certificate"},
             {make_pair(names, -90, -2), "has expired at"},
             {make_pair(names, -90, 10), "expires in 9 days"},
             {make_pair(names, 2, 90), "on only"},
             {make_pair("DNS:box.example.com", -1, 90), "is not for 3000-example.box.example.com"},
             {make_pair("DNS:*.example.com", -1, 90), "is not for"}}) {
        const Check check = judge(pair);
        EXPECT_EQ(check.finding, Finding::bad) << part;
        EXPECT_NE(check.text.find(part), std::string::npos) << check.text;
    }
    EXPECT_EQ(
        judge_certificate(good.certificate, good.key, "box.example.com", now_ms() + 80 * kDayMs).finding,
        Finding::bad);
}

TEST(Doctor, FindsChainsThatDrop) {
    const auto found = dropping_forward_chains(R"({"nftables":[{"metainfo":{}},
        {"chain":{"family":"ip","table":"filter","name":"FORWARD","hook":"forward","policy":"drop"}},
        {"chain":{"family":"ip","table":"filter","name":"INPUT","hook":"input","policy":"drop"}},
        {"chain":{"family":"inet","table":"glovebox_3fa9","name":"forward","hook":"forward","policy":"drop"}},
        {"chain":{"family":"inet","table":"own","name":"last","hook":"forward","policy":"accept"}},
        {"chain":{"family":"inet","table":"own","name":"some","hook":"forward","policy":"accept"}},
        {"rule":{"family":"inet","table":"own","chain":"last","expr":[{"counter":null},{"reject":null}]}},
        {"rule":{"family":"inet","table":"own","chain":"some","expr":[{"match":{}},{"drop":null}]}},
        {"rule":{"family":"ip","table":"filter","chain":"INPUT","expr":[{"drop":null}]}}]})");
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, (std::vector<std::string>{"ip filter FORWARD", "inet own last"}));
    EXPECT_EQ(judge_forwarding(found).finding, Finding::note);
    EXPECT_NE(judge_forwarding(found).text.find("ip filter FORWARD"), std::string::npos);
    EXPECT_EQ(judge_forwarding(dropping_forward_chains(R"({"nftables":[]})")).finding, Finding::good);
    for (const char* text : {"", "[]", "{}", R"({"nftables":3})"})
        EXPECT_FALSE(dropping_forward_chains(text)) << text;
    EXPECT_TRUE(dropping_forward_chains(R"({"nftables":[3,{"chain":null},{"rule":{"expr":[4,{}]}}]})"));
}

TEST(Doctor, AnNftThatCrashesIsBad) {
    EXPECT_EQ(judge_unlisted_rules(128 + 11, "").finding, Finding::bad);
    EXPECT_EQ(judge_unlisted_rules(1, "Operation not permitted").finding, Finding::note);
    EXPECT_NE(judge_unlisted_rules(1, "Operation not permitted").text.find("not permitted"), std::string::npos);
}

TEST(Doctor, JudgesNumbers) {
    EXPECT_EQ(judge_conntrack(262'144, 10).finding, Finding::good);
    EXPECT_EQ(judge_conntrack(131'072, 10).finding, Finding::note);
    EXPECT_EQ(judge_conntrack(8'192, 10).finding, Finding::bad);
    EXPECT_EQ(judge_conntrack(262'144, 262'000).finding, Finding::bad);
    EXPECT_EQ(judge_open_files(1'048'576, 1'048'576).finding, Finding::good);
    EXPECT_EQ(judge_open_files(1'024, 1'048'576).finding, Finding::good);
    EXPECT_EQ(judge_open_files(1'024, 20'000).finding, Finding::note);
    EXPECT_EQ(judge_open_files(256, 256).finding, Finding::bad);
    EXPECT_EQ(judge_space("disk", {"/x", 20ULL << 30, 1'000'000, 900'000}, 10).finding, Finding::good);
    EXPECT_EQ(judge_space("disk", {"/x", 20ULL << 30, 0, 0}, 10).finding, Finding::good);
    EXPECT_EQ(judge_space("disk", {"/x", 9ULL << 30, 0, 0}, 10).finding, Finding::bad);
    EXPECT_NE(judge_space("disk", {"/x", 20ULL << 30, 1'000'000, 9}, 10).text.find("9 inodes"),
              std::string::npos);
    EXPECT_EQ(judge_clock(2'000, 1'000, true).finding, Finding::good);
    EXPECT_EQ(judge_clock(2'000, 1'000, false).finding, Finding::note);
    EXPECT_EQ(judge_clock(1'000, 2'000, true).finding, Finding::bad);
}

TEST(Doctor, SaysWhoHasThePort) {
    EXPECT_EQ(judge_port("port", "127.0.0.1", 3000, PortUse::free).finding, Finding::good);
    EXPECT_EQ(judge_port("port", "127.0.0.1", 3000, PortUse::ours).finding, Finding::good);
    EXPECT_EQ(judge_port("port", "127.0.0.1", 3000, PortUse::others).finding, Finding::bad);
    EXPECT_EQ(judge_port("port", "192.0.2.1", 3000, PortUse::unusable).finding, Finding::bad);
}

TEST(Doctor, SomebodyMustAnswerForNames) {
    EXPECT_EQ(judge_resolvers({"9.9.9.9:53"}, "").finding, Finding::good);
    const Check host =
        judge_resolvers({}, "# nameserver 8.8.8.8\nsearch x\nnameserver ::1\nnameserver\t10.0.0.2\r\n");
    EXPECT_EQ(host.finding, Finding::good);
    EXPECT_NE(host.text.find("10.0.0.2"), std::string::npos);
    EXPECT_EQ(host.text.find("8.8.8.8"), std::string::npos);
    for (const char* text :
         {"", "nameserver", "nameserver ", "nameserver ::1\n", "nameserver1.1.1.1", "nameserver 1.1.1"})
        EXPECT_EQ(judge_resolvers({}, text).finding, Finding::note) << text;
}

}  // namespace
}  // namespace gb::cli
