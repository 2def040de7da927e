// SPDX-License-Identifier: Apache-2.0
#include "egress/certificate_authority.h"

#include <set>

#include <sys/stat.h>

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/assert_ok.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/subprocess.h"

namespace gb::egress {
namespace {

constexpr std::int64_t kDayMs = 86'400'000;
using Certificate = std::shared_ptr<X509>;

Certificate parse(const std::string& pem) {
    BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
    Certificate out(PEM_read_bio_X509(bio, nullptr, nullptr, nullptr), X509_free);
    BIO_free(bio);
    return out;
}

// X509_V_OK, or what a strict client says of that certificate at that time.
int verdict(const std::string& root_pem, X509* leaf, const std::string& host, std::int64_t at_ms = now_ms()) {
    X509_STORE* store = X509_STORE_new();
    X509_STORE_add_cert(store, parse(root_pem).get());
    X509_STORE_CTX* context = X509_STORE_CTX_new();
    X509_STORE_CTX_init(context, store, leaf, nullptr);
    X509_VERIFY_PARAM* param = X509_STORE_CTX_get0_param(context);
    X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_X509_STRICT);
    X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    X509_VERIFY_PARAM_set1_host(param, host.data(), host.size());
    X509_VERIFY_PARAM_set_time(param, at_ms / 1000);
    X509_verify_cert(context);
    const int out = X509_STORE_CTX_get_error(context);
    X509_STORE_CTX_free(context);
    X509_STORE_free(store);
    return out;
}

X509* certificate(const std::shared_ptr<SSL_CTX>& context) {
    return SSL_CTX_get0_certificate(context.get());
}

std::string serial(X509* c) {
    BIGNUM* number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(c), nullptr);
    char* text = BN_bn2hex(number);
    std::string out(text);
    OPENSSL_free(text);
    BN_free(number);
    return out;
}

class CertificateAuthorityTest : public ::testing::Test {
  protected:
    void SetUp() override { ASSERT_TRUE(make_dirs(dir_)); }
    void TearDown() override { ASSERT_TRUE(remove_tree(dir_)); }
    const std::filesystem::path dir_ = std::filesystem::temp_directory_path() / ("gb-ca-" + random_id(10));
};

TEST_F(CertificateAuthorityTest, SignsForExactlyOneName) {
    auto ca = CertificateAuthority::make("i123");
    ASSERT_OK(ca);
    auto leaf = ca->leaf("api.good.test");
    ASSERT_OK(leaf);
    EXPECT_EQ(verdict(ca->pem(), certificate(*leaf), "api.good.test"), X509_V_OK);
    for (const char* other : {"good.test", "b.good.test", "a.api.good.test", "api.good.test.evil.test"})
        EXPECT_EQ(verdict(ca->pem(), certificate(*leaf), other), X509_V_ERR_HOSTNAME_MISMATCH) << other;
    // Nobody else believes it.
    auto other = CertificateAuthority::make("i123");
    ASSERT_OK(other);
    EXPECT_NE(verdict(other->pem(), certificate(*leaf), "api.good.test"), X509_V_OK);
}

TEST_F(CertificateAuthorityTest, IsValidForAsLongAsItSays) {
    const std::int64_t now = now_ms();
    auto ca = CertificateAuthority::make("i123", [&] { return now; });
    ASSERT_OK(ca);
    const auto leaf = *ca->leaf("a.test");
    EXPECT_EQ(verdict(ca->pem(), certificate(leaf), "a.test", now - kDayMs + 60'000), X509_V_OK)
        << "a guest's clock may be behind";
    EXPECT_EQ(verdict(ca->pem(), certificate(leaf), "a.test", now - kDayMs - 60'000),
              X509_V_ERR_CERT_NOT_YET_VALID);
    EXPECT_EQ(verdict(ca->pem(), certificate(leaf), "a.test", now + 7 * kDayMs - 60'000), X509_V_OK);
    EXPECT_EQ(verdict(ca->pem(), certificate(leaf), "a.test", now + 7 * kDayMs + 60'000),
              X509_V_ERR_CERT_HAS_EXPIRED);
    ASSERT_OK(ca->save(dir_ / "ca.pem"));
    const std::int64_t late = now + 9 * 365 * kDayMs;  // paused for nine years
    auto again = CertificateAuthority::load(dir_ / "ca.pem", [&] { return late; });
    ASSERT_OK(again);
    EXPECT_EQ(verdict(ca->pem(), certificate(*again->leaf("a.test")), "a.test", late), X509_V_OK);
}

TEST_F(CertificateAuthorityTest, SaysWhatItIs) {
    auto ca = CertificateAuthority::make("i123");
    ASSERT_OK(ca);
    const Certificate root = parse(ca->pem());
    ASSERT_TRUE(root);
    char name[100] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(root.get()), NID_commonName, name, sizeof name);
    EXPECT_STREQ(name, "Glovebox sandbox i123");
    EXPECT_EQ(X509_get_pathlen(root.get()), 0);
    EXPECT_EQ(X509_check_ca(root.get()), 1);
    EXPECT_EQ(X509_get_key_usage(root.get()), static_cast<unsigned>(KU_KEY_CERT_SIGN | KU_CRL_SIGN));
    EXPECT_EQ(ca->pem().find("PRIVATE"), std::string::npos);
    X509* leaf = certificate(*ca->leaf("a.test"));
    EXPECT_EQ(X509_check_ca(leaf), 0);
    EXPECT_EQ(X509_get_extended_key_usage(leaf), static_cast<unsigned>(XKU_SSL_SERVER));
    std::set<std::string> serials;
    for (int i = 0; i < 50; ++i)
        serials.insert(serial(certificate(*ca->leaf("h" + std::to_string(i) + ".test"))));
    EXPECT_EQ(serials.size(), 50U);
}

TEST_F(CertificateAuthorityTest, IsFoundInAFolderByItsHash) {
    auto ca = CertificateAuthority::make("i123");
    ASSERT_OK(ca);
    const auto path = dir_ / "certificate.pem";
    ASSERT_OK(write_file_atomic(path, ca->pem()));
    const auto said = run({"openssl", "x509", "-noout", "-hash", "-in", path.string()});
    ASSERT_OK(said);
    const auto hash = ca->subject_hash();
    ASSERT_OK(hash);
    EXPECT_EQ(*hash + "\n", said->out) << said->err;
    EXPECT_EQ(CertificateAuthority::make("i123")->subject_hash(), *hash) << "it is the name's, not the key's";
    EXPECT_NE(CertificateAuthority::make("i124")->subject_hash(), *hash);
    // As a client looks it up.
    ASSERT_OK(write_file_atomic(dir_ / (*hash + ".0"), ca->pem()));
    X509_STORE* store = X509_STORE_new();
    ASSERT_EQ(X509_STORE_load_path(store, dir_.c_str()), 1);
    X509_STORE_CTX* context = X509_STORE_CTX_new();
    const auto leaf = *ca->leaf("a.test");
    X509_STORE_CTX_init(context, store, certificate(leaf), nullptr);
    EXPECT_EQ(X509_verify_cert(context), 1) << X509_STORE_CTX_get_error(context);
    X509_STORE_CTX_free(context);
    X509_STORE_free(store);
}

TEST_F(CertificateAuthorityTest, IsTheSameAfterSaveAndLoad) {
    auto ca = CertificateAuthority::make("i123");
    ASSERT_OK(ca);
    const auto path = dir_ / "ca.pem";
    ASSERT_OK(ca->save(path));
    struct stat s{};
    ASSERT_EQ(::stat(path.c_str(), &s), 0);
    EXPECT_EQ(s.st_mode & 0777, 0600U);
    auto again = CertificateAuthority::load(path);
    ASSERT_OK(again);
    EXPECT_EQ(again->pem(), ca->pem());
    EXPECT_EQ(verdict(ca->pem(), certificate(*again->leaf("a.test")), "a.test"), X509_V_OK);
}

TEST_F(CertificateAuthorityTest, WhatIsNoAuthorityIsRefusedWithoutItsText) {
    auto ca = CertificateAuthority::make("i123");
    auto other = CertificateAuthority::make("i456");
    ASSERT_OK(ca);
    ASSERT_OK(other);
    const auto path = dir_ / "ca.pem";
    ASSERT_OK(other->save(path));
    const std::string saved = *read_file(path), key = saved.substr(saved.find("-----BEGIN PRIVATE"));
    for (const std::string& text : {std::string(), ca->pem(), key, ca->pem() + key, ca->pem() + "secret",
                                    saved.substr(0, saved.size() - 60)}) {
        ASSERT_OK(write_file_atomic(path, text));
        auto loaded = CertificateAuthority::load(path);
        ASSERT_FALSE(loaded);
        EXPECT_EQ(loaded.error().message, path.string() + ": is no certificate authority with its key");
    }
    auto missing = CertificateAuthority::load(dir_ / "none.pem");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::not_found);
    EXPECT_FALSE(ca->save(dir_ / "none" / "ca.pem"));
}

TEST_F(CertificateAuthorityTest, LeavesAreKeptAndMadeAnewInTime) {
    std::int64_t now = now_ms();
    auto ca = CertificateAuthority::make("i123", [&] { return now; });
    ASSERT_OK(ca);
    const auto first = *ca->leaf("a.test");
    now += 6 * kDayMs;
    EXPECT_EQ(*ca->leaf("a.test"), first);
    now += 60'000;
    const auto second = *ca->leaf("a.test");
    EXPECT_NE(second, first) << "less than a day is left";
    EXPECT_EQ(*ca->leaf("a.test"), second);
    // The one that was not used for longest goes.
    for (std::size_t i = 0; i < CertificateAuthority::kMostLeaves; ++i) {
        ASSERT_OK(ca->leaf("h" + std::to_string(i) + ".test"));
        EXPECT_EQ(*ca->leaf("a.test"), second);
    }
    const auto h1 = *ca->leaf("h1.test");
    const auto h0 = *ca->leaf("h0.test");  // was out, and puts out h2
    EXPECT_EQ(*ca->leaf("h1.test"), h1);
    EXPECT_EQ(*ca->leaf("h0.test"), h0);
    EXPECT_EQ(*ca->leaf("a.test"), second);
}

TEST_F(CertificateAuthorityTest, OnlyDnsNames) {
    auto ca = CertificateAuthority::make("i123");
    ASSERT_OK(ca);
    using std::string_literals::operator""s;
    for (const std::string& host :
         {""s, "a b"s, "*.test"s, "A.test"s, "a..b"s, ".a"s, "a."s, "a\0b"s, "a,DNS:b"s, "a\nb"s, "[::1]"s,
          std::string(254, 'a'), std::string(64, 'a') + ".test", "\xc3\xa9.test"s})
        EXPECT_FALSE(ca->leaf(host)) << host;
    std::string longest;
    for (int i = 0; i < 4; ++i) longest += std::string(62, 'a') + ".";
    longest += "b";
    for (const std::string& host : {"a"s, "xn--caf-dma.test"s, "_a.b-c.test"s, longest}) {
        auto leaf = ca->leaf(host);
        ASSERT_OK(leaf);
        EXPECT_EQ(verdict(ca->pem(), certificate(*leaf), host), X509_V_OK) << host;
    }
    EXPECT_FALSE(CertificateAuthority::make(std::string(60, 'i')));
}

}  // namespace
}  // namespace gb::egress
