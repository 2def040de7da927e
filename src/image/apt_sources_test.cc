// SPDX-License-Identifier: Apache-2.0
#include "image/apt_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image/test_folder.h"

namespace gb::image {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(AptSources, OneLineFormat) {
    auto sources = parse_one_line_sources(
        "# deb http://commented.example/debian bookworm main\n"
        "deb http://mirror.example/debian/ bookworm main contrib  # the usual\n"
        "deb-src http://mirror.example/debian bookworm main\n"
        "\n"
        "deb [ arch=amd64 signed-by=/etc/apt/keyrings/x.gpg ] https://x.example/linux/debian bookworm "
        "stable\n"
        "deb http://broken.example\n"
        "deb [unclosed http://broken.example bookworm main\n");
    ASSERT_EQ(sources.size(), 2U);
    EXPECT_THAT(sources[0].uris, ElementsAre("http://mirror.example/debian/"));
    EXPECT_THAT(sources[0].suites, ElementsAre("bookworm"));
    EXPECT_THAT(sources[0].components, ElementsAre("main", "contrib"));
    EXPECT_EQ(sources[0].signed_by, "");
    EXPECT_EQ(sources[1].signed_by, "/etc/apt/keyrings/x.gpg");
}

TEST(AptSources, Deb822Format) {
    auto sources = parse_deb822_sources(
        "Types: deb deb-src\n"
        "# a comment between fields\n"
        "URIs: http://one.example/debian\n"
        "  http://two.example/debian\n"
        "Suites: bookworm bookworm-updates\n"
        "Components: main\n"
        "signed-by: /usr/share/keyrings/debian-archive-keyring.gpg\n"
        "\n"
        "Types: deb\n"
        "URIs: http://off.example/debian\n"
        "Suites: bookworm\n"
        "Components: main\n"
        "Enabled: no\n"
        "\n\n"
        "Types: deb-src\n"
        "URIs: http://source.example/debian\n"
        "Suites: bookworm\n"
        "Components: main\n");
    ASSERT_EQ(sources.size(), 1U);
    EXPECT_THAT(sources[0].uris, ElementsAre("http://one.example/debian", "http://two.example/debian"));
    EXPECT_THAT(sources[0].suites, ElementsAre("bookworm", "bookworm-updates"));
    EXPECT_THAT(parse_deb822_sources(""), IsEmpty());
}

TEST(AptSources, DebianItselfIsChosen) {
    auto mirrors = choose_debian_mirrors(
        parse_one_line_sources("deb http://mirror.example/pub/debian/ bookworm main\n"
                               "deb http://mirror.example/pub/debian-security/ bookworm-security main\n"
                               "deb http://second.example/debian bookworm main\n"));
    EXPECT_EQ(mirrors.archive, "http://mirror.example/pub/debian");
    EXPECT_EQ(mirrors.security, "http://mirror.example/pub/debian-security");
}

TEST(AptSources, SnapshotsAreDebian) {
    auto mirrors = choose_debian_mirrors(parse_one_line_sources(
        "deb http://snapshot.example/archive/debian/20250520T000000Z bookworm main\n"
        "deb http://snapshot.example/archive/debian-security/20250520T000000Z bookworm-security main\n"));
    EXPECT_EQ(mirrors.archive, "http://snapshot.example/archive/debian/20250520T000000Z");
    EXPECT_EQ(mirrors.security, "http://snapshot.example/archive/debian-security/20250520T000000Z");
}

TEST(AptSources, ThirdPartiesAreNot) {
    for (const char* line : {
             "deb [signed-by=/usr/share/keyrings/vendor.gpg] https://vendor.example/stable/debian bookworm "
             "main",
             "deb https://vendor.example/linux/debian bookworm stable",
             "deb https://vendor.example/node_20.x nodistro main",
             "deb https://vendor.example/pub/repos/apt bookworm-pgdg main",
             "deb https://vendor.example/debian/12/prod bookworm main",
             "deb http://archive.example/ubuntu noble main",
         }) {
        auto mirrors = choose_debian_mirrors(parse_one_line_sources(line));
        EXPECT_EQ(mirrors.archive, "http://deb.debian.org/debian") << line;
        EXPECT_EQ(mirrors.security, "http://deb.debian.org/debian-security") << line;
    }
}

TEST(AptSources, ReadsTheFolderOfTheHost) {
    TestFolder folder;
    folder.write("sources.list",
                 "deb mirror+file:" + (folder.path() / "mirror").string() + " bookworm main\n");
    folder.write("mirror", "http://near.example/debian/\thttp://far.example/debian\n");
    folder.write("sources.list.d/old.list.disabled",
                 "deb http://off.example/debian-security bookworm-security main\n");
    folder.write("sources.list.d/security.sources",
                 "Types: deb\nURIs: http://near.example/debian-security\nSuites: "
                 "bookworm-security\nComponents: main\n");
    auto mirrors = detect_debian_mirrors(folder.path());
    EXPECT_EQ(mirrors.archive, "http://near.example/debian");
    EXPECT_EQ(mirrors.security, "http://near.example/debian-security");
    EXPECT_EQ(detect_debian_mirrors(folder.path() / "none").archive, DebianMirrors().archive);
}

TEST(AptSources, EveryLineIsBoundToDebiansKeys) {
    std::string list =
        debian_sources_list({"http://m.example/debian", "http://m.example/debian-security"}, "bookworm");
    EXPECT_EQ(
        list,
        "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://m.example/debian bookworm "
        "main\n"
        "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://m.example/debian "
        "bookworm-updates "
        "main\n"
        "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://m.example/debian-security "
        "bookworm-security main\n");
}

}  // namespace
}  // namespace gb::image
