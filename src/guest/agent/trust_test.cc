// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/trust.h"

#include <filesystem>
#include <map>

#include <sys/stat.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/assert_ok.h"
#include "base/file.h"
#include "base/ids.h"
#include "guest/agent/init_request.h"
#include "guest/agent/launch.h"

namespace gb::agent {
namespace {

namespace fs = std::filesystem;

std::string certificate(std::string_view body) {
    return "-----BEGIN CERTIFICATE-----\n" + std::string(body) + "\n-----END CERTIFICATE-----\n";
}

const Authority kOurs{certificate("MAAA"), "0123abcd"};
const Authority kParents{certificate("MBBB"), "89ab0000"};
const std::string kPublic = "# a comment\n" + certificate("MCCC") + certificate("MDDD");

TEST(TrustBundle, IsWhatItWasAfterwards) {
    for (const std::string& before : {std::string(), kPublic, kPublic + "\n\n", std::string("\r\n# x\r\n")}) {
        const std::string with = with_authority(before, kOurs.pem, {});
        EXPECT_TRUE(with.starts_with(before));
        EXPECT_NE(with.find(kOurs.pem), std::string::npos);
        EXPECT_EQ(with_authority(with, kOurs.pem, {}), with);
        EXPECT_EQ(with_authority(with, kParents.pem, {}), with_authority(before, kParents.pem, {}));
        EXPECT_EQ(without_authority(with, {}), before);
        EXPECT_EQ(without_authority(with + kPublic, {}), before + kPublic) << "somebody has added to it";
    }
    EXPECT_EQ(without_authority(with_authority("no ending", kOurs.pem, {}) + "more", {}), "no ending\nmore");
}

TEST(TrustBundle, WhatIsNotOursStays) {
    const std::string with = with_authority("", kOurs.pem, {});
    const std::string begin = with.substr(0, with.find('\n') + 1);
    const std::string end = with.substr(with.find(kOurs.pem) + kOurs.pem.size());
    const std::string theirs = certificate("MEEE");
    EXPECT_EQ(without_authority(begin + kPublic, {}), kPublic) << "an end that is lost takes nothing along";
    EXPECT_EQ(without_authority(begin + kOurs.pem + theirs + end, {kOurs.pem}), theirs);
    EXPECT_EQ(without_authority(begin + theirs + kOurs.pem + end, {kOurs.pem}), theirs);
    EXPECT_EQ(without_authority(begin + end + theirs, {}), theirs);
    EXPECT_EQ(without_authority(end + theirs + begin, {}), theirs);
    EXPECT_EQ(without_authority(" " + begin + theirs, {}), " " + begin + theirs);
    // As update-ca-certificates copies it.
    EXPECT_EQ(without_authority(kPublic + kOurs.pem + theirs, {kOurs.pem}), kPublic + theirs);
    EXPECT_EQ(without_authority(kPublic + kOurs.pem.substr(0, kOurs.pem.size() - 1), {kOurs.pem}), kPublic);
    EXPECT_EQ(without_authority(kOurs.pem.substr(0, 40), {kOurs.pem}), kOurs.pem.substr(0, 40));
}

TEST(TrustRequest, IsOneCertificateAndItsHashOrNone) {
    EXPECT_EQ(make_authority(kOurs.pem, kOurs.hash), kOurs);
    EXPECT_EQ(make_authority(kOurs.pem.substr(0, kOurs.pem.size() - 1), kOurs.hash), kOurs);
    EXPECT_EQ(make_authority("", "whatever"), Authority{});
    for (const std::string& pem :
         {std::string("x"), " " + kOurs.pem, kOurs.pem + "\n", kOurs.pem + kOurs.pem, certificate(""),
          certificate("!"), certificate("AAAA"), certificate("MAAA\n# y"), certificate(std::string(80, 'M')),
          kOurs.pem.substr(0, 50),
          std::string("-----BEGIN PRIVATE KEY-----\nMAAA\n-----END PRIVATE KEY-----\n")}) {
        const auto refused = make_authority(pem, kOurs.hash);
        ASSERT_FALSE(refused) << pem;
        EXPECT_EQ(refused.error().message, "caBundle: must be one certificate in PEM form");
    }
    for (const char* hash : {"", "0123abc", "0123abcde", "0123ABCD", "../x0000", "0123abcg"})
        EXPECT_FALSE(make_authority(kOurs.pem, hash)) << hash;

    const std::string fields =
        R"("caBundle":"-----BEGIN CERTIFICATE-----\nMAAA\n-----END CERTIFICATE-----\n","caHash":"0123abcd")";
    EXPECT_EQ(parse_trust_request("{" + fields + "}"), kOurs);
    EXPECT_EQ(parse_init_request("{" + fields + "}")->authority, kOurs);
    EXPECT_EQ(parse_trust_request(R"({"caBundle":"","caHash":""})"), Authority{});
    EXPECT_EQ(parse_init_request(R"({"caBundle":""})")->authority, Authority{});
    EXPECT_EQ(parse_init_request(R"({"caBundle":null})")->authority, std::nullopt);
    for (const char* body : {"", "{}", R"({"caBundle":null})", R"({"caBundle":5})", R"({"caBundle":"x"})"})
        EXPECT_EQ(parse_trust_request(body).error().code, ErrorCode::invalid_argument) << body;
    EXPECT_FALSE(parse_init_request(R"({"caBundle":"x","caHash":"0123abcd"})"));
}

TEST(TrustVariables, AreThoseOfTheTrustStoreUnlessTheSandboxSaysOtherwise) {
    Settings settings;
    settings.env = {{"CURL_CA_BUNDLE", "/mine"}};
    EXPECT_EQ(global_environment(settings), settings.env);
    settings.trusts_authority = true;
    const User user{.name = "u", .home = "/home/u"};
    const Environment env = process_environment(settings, user, {{"SSL_CERT_FILE", ""}});
    for (const char* name : {"NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE"})
        EXPECT_EQ(env.at(name), "/etc/ssl/certs/ca-certificates.crt") << name;
    EXPECT_EQ(env.at("CURL_CA_BUNDLE"), "/mine");
    EXPECT_EQ(env.at("SSL_CERT_FILE"), "");
    settings.trusts_authority = false;
    EXPECT_EQ(process_environment(settings, user, {}).count("AWS_CA_BUNDLE"), 0U);
}

class TrustStoreTest : public ::testing::Test {
  protected:
    void SetUp() override { ASSERT_TRUE(fs::create_directories(root_)); }
    void TearDown() override { fs::remove_all(outside_); }

    [[nodiscard]] fs::path at(const std::string& name) const { return root_ / name; }
    void put(const std::string& name, const std::string& text) {
        fs::create_directories(at(name).parent_path());
        ASSERT_OK(write_file_atomic(at(name), text));
    }
    void link(const std::string& target, const std::string& name) {
        fs::create_directories(at(name).parent_path());
        fs::create_symlink(target, at(name));
    }
    [[nodiscard]] std::string text(const std::string& name) const {
        return read_file(at(name)).value_or("(none)");
    }

    // All names below the root: links with where they lead, files with their text.
    [[nodiscard]] std::map<std::string, std::string> everything() const {
        std::map<std::string, std::string> out;
        for (const auto& entry : fs::recursive_directory_iterator(root_)) {
            const std::string name = entry.path().lexically_relative(root_).string();
            if (entry.is_symlink())
                out[name] = "-> " + fs::read_symlink(entry.path()).string();
            else if (entry.is_regular_file())
                out[name] = text(name);
            else if (!entry.is_directory())
                out[name] = "(special)";
        }
        return out;
    }
    void set(const Authority& authority) {
        const auto outcome = store_.apply(authority);
        ASSERT_OK(outcome.status);
        EXPECT_EQ(outcome.trusted, !authority.pem.empty());
    }

    const fs::path outside_ = fs::temp_directory_path() / ("gb-trust-" + random_id(10));
    const fs::path root_ = outside_ / "root";
    TrustStore store_{root_};
    static constexpr const char* kBundle = "etc/ssl/certs/ca-certificates.crt";
    static constexpr const char* kLocal = "usr/local/share/ca-certificates/glovebox-egress.crt";
    static constexpr const char* kLinkTarget = "../../../usr/local/share/ca-certificates/glovebox-egress.crt";
};

TEST_F(TrustStoreTest, ComesAndGoesEverywhere) {
    put(kBundle, kPublic);
    put("etc/pki/tls/certs/ca-bundle.crt", kPublic);
    link("certs/ca-certificates.crt", "etc/ssl/cert.pem");
    put("etc/ssl/certs/other.pem", "x");
    link("other.pem", "etc/ssl/certs/11112222.0");
    fs::permissions(at(kBundle), fs::perms::owner_all);
    const auto before = everything();
    set({});
    EXPECT_EQ(everything(), before);
    set(kOurs);
    EXPECT_EQ(text(kBundle), with_authority(kPublic, kOurs.pem, {}));
    EXPECT_EQ(text("etc/ssl/cert.pem"), text(kBundle)) << "once, not twice";
    EXPECT_TRUE(fs::is_symlink(at("etc/ssl/cert.pem")));
    EXPECT_EQ(text("etc/pki/tls/certs/ca-bundle.crt"), text(kBundle));
    EXPECT_EQ(text(kLocal), kOurs.pem);
    EXPECT_EQ(text("etc/ssl/certs/0123abcd.0"), kOurs.pem);
    const auto with = everything();
    EXPECT_EQ(with.size(), before.size() + 2);
    set(kOurs);
    EXPECT_EQ(everything(), with);
    // The child of a snapshot: another agent, another authority.
    TrustStore child(root_);
    ASSERT_OK(child.apply(kParents).status);
    EXPECT_EQ(text(kBundle), with_authority(kPublic, kParents.pem, {}));
    EXPECT_EQ(text("etc/ssl/certs/0123abcd.0"), "(none)");
    EXPECT_EQ(text("etc/ssl/certs/89ab0000.0"), kParents.pem);
    ASSERT_OK(TrustStore(root_).apply({}).status);
    EXPECT_EQ(everything(), before);
    EXPECT_EQ(fs::status(at(kBundle)).permissions(), fs::perms::owner_all);
}

TEST_F(TrustStoreTest, AGuestWithoutCertificatesGetsTheFolders) {
    set({});
    EXPECT_TRUE(everything().empty());
    EXPECT_FALSE(fs::exists(at("etc")));
    set(kOurs);
    EXPECT_EQ(text(kBundle), with_authority("", kOurs.pem, {}));
    EXPECT_EQ(fs::status(at(kBundle)).permissions(), fs::perms(0644));
    EXPECT_EQ(everything().size(), 3U) << "bundles that were not there are not made";
    set({});
    EXPECT_TRUE(everything().empty());
}

TEST_F(TrustStoreTest, SurvivesAndEndsWhatUpdateCaCertificatesMadeOfIt) {
    put(kBundle, kPublic);
    set(kOurs);
    // The bundle anew, in the order of the names; a link of its own; the folder's links to that.
    put(kBundle, certificate("MCCC") + text(kLocal) + certificate("MDDD"));
    link("/" + std::string(kLocal), "etc/ssl/certs/glovebox-egress.pem");
    fs::remove(at("etc/ssl/certs/0123abcd.0"));
    link("glovebox-egress.pem", "etc/ssl/certs/0123abcd.0");
    set(kOurs);
    EXPECT_EQ(fs::read_symlink(at("etc/ssl/certs/0123abcd.0")), "glovebox-egress.pem");
    EXPECT_FALSE(fs::exists(fs::symlink_status(at("etc/ssl/certs/0123abcd.1"))));
    put(kBundle, certificate("MCCC") + text(kLocal) + certificate("MDDD"));
    ASSERT_OK(TrustStore(root_).apply(kParents).status);
    EXPECT_EQ(text(kBundle), with_authority(certificate("MCCC") + certificate("MDDD"), kParents.pem, {}));
    ASSERT_OK(TrustStore(root_).apply({}).status);
    EXPECT_EQ(everything(),
              (std::map<std::string, std::string>{{kBundle, certificate("MCCC") + certificate("MDDD")}}));
}

TEST_F(TrustStoreTest, AnotherCertificateOfTheSameHashKeepsBeingFound) {
    put("etc/ssl/certs/theirs.pem", "x");
    link("theirs.pem", "etc/ssl/certs/0123abcd.0");
    set(kOurs);
    EXPECT_EQ(fs::read_symlink(at("etc/ssl/certs/0123abcd.0")), "theirs.pem");
    EXPECT_EQ(fs::read_symlink(at("etc/ssl/certs/0123abcd.1")), kLinkTarget);
    put("etc/ssl/certs/0123abcd.2", "y");
    set(kOurs);
    EXPECT_EQ(fs::read_symlink(at("etc/ssl/certs/0123abcd.1")), kLinkTarget);
    // OpenSSL ends at the first number that is missing.
    set({});
    EXPECT_EQ(fs::read_symlink(at("etc/ssl/certs/0123abcd.0")), "theirs.pem");
    EXPECT_EQ(text("etc/ssl/certs/0123abcd.1"), "y");
    EXPECT_FALSE(fs::exists(at("etc/ssl/certs/0123abcd.2")));
}

TEST_F(TrustStoreTest, LinksAreFollowedWithinEtcAndWrittenThrough) {
    put("etc/store/tls.pem", kPublic);
    link("../../store/tls.pem", kBundle);
    const auto before = everything();
    set(kOurs);
    EXPECT_EQ(text("etc/store/tls.pem"), with_authority(kPublic, kOurs.pem, {}));
    set({});
    EXPECT_EQ(everything(), before);
}

TEST_F(TrustStoreTest, NothingOutsideIsWritten) {
    const std::string prey = (outside_ / "prey").string();
    ASSERT_OK(write_file_atomic(prey, kPublic));
    link(prey, kBundle);
    link(prey, "etc/ssl/cert.pem");
    link(prey, kLocal);
    link(outside_.string(), "etc/pki");
    const auto outcome = store_.apply(kOurs);
    ASSERT_FALSE(outcome.status);
    EXPECT_FALSE(outcome.trusted);
    EXPECT_EQ(outcome.status.error().code, ErrorCode::failed_precondition);
    EXPECT_EQ(read_file(prey), kPublic);
    // The name is ours: the link goes, and what it led to does not.
    EXPECT_FALSE(fs::is_symlink(at(kLocal)));
    EXPECT_EQ(text(kLocal), kOurs.pem);
    EXPECT_FALSE(fs::exists(outside_ / "tls"));
    set({});
    EXPECT_EQ(read_file(prey), kPublic);
    EXPECT_TRUE(fs::is_symlink(at(kBundle)));

    fs::remove_all(root_);
    fs::create_directories(outside_ / "elsewhere");
    link((outside_ / "elsewhere").string(), "etc/ssl");
    link((outside_ / "elsewhere").string(), "usr/local");
    EXPECT_FALSE(store_.apply(kOurs).trusted);
    EXPECT_TRUE(fs::is_empty(outside_ / "elsewhere"));
    set({});
}

TEST_F(TrustStoreTest, WhatIsNoFileIsLeftAloneAndNotWaitedFor) {
    fs::create_directories(at("etc/ssl/certs"));
    ASSERT_EQ(::mkfifo(at(kBundle).c_str(), 0644), 0);
    fs::create_directories(at("etc/ssl/cert.pem/x"));
    link("nowhere", "etc/pki/tls/certs/ca-bundle.crt");
    const auto before = everything();
    EXPECT_FALSE(store_.apply(kOurs).trusted);
    set({});
    EXPECT_EQ(everything(), before);
    fs::remove(at(kBundle));
    link("nowhere", kBundle);
    EXPECT_FALSE(store_.apply(kOurs).trusted);
    EXPECT_FALSE(fs::exists(at("etc/ssl/certs/nowhere")));
    // A failure is not for ever.
    fs::remove(at(kBundle));
    set(kOurs);
}

}  // namespace
}  // namespace gb::agent
