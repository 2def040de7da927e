// SPDX-License-Identifier: Apache-2.0
// One spelling for every host, and an error for everything that two programs could read in two ways.
#include "net/host_name.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace gb::net {
namespace {

using namespace std::string_literals;

std::string shown(const Result<Host>& host) {
    if (!host) return "error";
    switch (host->kind) {
        case Host::Kind::name:
            return host->name;
        case Host::Kind::ipv4:
            return "v4 " + to_string(host->address);
        case Host::Kind::ipv6:
            return "v6";
    }
    return "";
}

TEST(HostName, HasOneSpelling) {
    const std::pair<std::string, std::string> kCases[] = {
        {"example.com", "example.com"},
        {"EXAMPLE.Com", "example.com"},
        {"a", "a"},
        {"_dmarc.example.com", "_dmarc.example.com"},
        {"XN--BCHER-KVA.example", "xn--bcher-kva.example"},
        {"1.2.3.4.example", "1.2.3.4.example"},
        {"3com.com", "3com.com"},
        {"1.2.3.4", "v4 1.2.3.4"},
        {"255.255.255.255", "v4 255.255.255.255"},
        {"::ffff:1.2.3.4", "v4 1.2.3.4"},
        {"::FFFF:0102:0304", "v4 1.2.3.4"},
        {"2001:db8::1", "v6"},
        {"::", "v6"},
        {std::string(63, 'a') + ".b", std::string(63, 'a') + ".b"},
    };
    for (const auto& [text, expected] : kCases) EXPECT_EQ(shown(parse_host(text)), expected) << text;
}

TEST(HostName, RefusesWhatIsReadInTwoWays) {
    const std::string kCases[] = {
        "",
        ".",
        "example.com.",
        "example.com..",
        ".example.com",
        "a..b",
        "evil\0.ok.com"s,
        "\0"s,
        "ok.com\0"s,
        "ok.com\n",
        "ok.com\r\nx: y",
        " ok.com",
        "ok.com ",
        "o k.com",
        "ok.com\t",
        "\x7fok.com",
        "ok%2ecom",
        "ok.com/",
        "ok.com#",
        "ok.com?",
        "user@ok.com",
        "ok.com\\",
        "*.ok.com",
        "b\xc3\xbc"
        "cher.example",
        "ok\xe3\x80\x82"
        "com",  // an ideographic full stop
        "\xef\xbd\x8fk.com",
        "127.1",
        "127.0.0.1.",
        "0x7f.0.0.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "010.1.1.1",
        "1.2.3.4.5",
        "1.2.3",
        "1.2.3.256",
        "1.2.3.0x4",
        "a.0x",
        "a.1",
        "::1%lo",
        "::ffff:1.2.3.4\0"s,
        "[::1]",
        "1:2",
        std::string(64, 'a'),
        std::string(254, 'a'),
    };
    for (const std::string& text : kCases) EXPECT_EQ(shown(parse_host(text)), "error") << text;
    std::string long_name;
    while (long_name.size() < 252) long_name += "a.";
    EXPECT_EQ(shown(parse_host(long_name + "a")), long_name + "a");
    EXPECT_EQ(shown(parse_host(long_name + "aa")), "error");
}

TEST(HostName, Authorities) {
    struct Case {
        std::string text, host;
        std::optional<std::uint16_t> port;
    };
    const Case kCases[] = {
        {"Example.com", "example.com", {}},          {"example.com:8080", "example.com", 8080},
        {"1.2.3.4:65535", "v4 1.2.3.4", 65535},      {"[::1]", "v6", {}},
        {"[::ffff:10.0.0.1]:80", "v4 10.0.0.1", 80},
    };
    for (const Case& c : kCases) {
        auto authority = parse_authority(c.text);
        ASSERT_TRUE(authority) << c.text;
        EXPECT_EQ(shown(authority->host), c.host);
        EXPECT_EQ(authority->port, c.port);
    }
    for (const std::string& text :
         {"example.com:"s, "example.com:0"s, "example.com:65536"s, "example.com:80x"s, "example.com:+80"s,
          "example.com:80:80"s, ":80"s, "::1"s, "[::1"s, "[::1]x"s, "[::1]80"s, "[1.2.3.4]"s, "[]"s,
          "example.com,evil.com"s, "example.com:80 "s, "[::1%25lo]"s})
        EXPECT_FALSE(parse_authority(text)) << text;
}

TEST(HostName, PatternsOfRules) {
    struct Case {
        const char *pattern, *name;
        bool matches;
    };
    const Case kCases[] = {
        {"example.com", "example.com", true},
        {"Example.COM", "example.com", true},
        {"example.com", "a.example.com", false},
        {"example.com", "notexample.com", false},
        {"*.example.com", "a.example.com", true},
        {"*.example.com", "a.b.example.com", true},
        {"*.Example.com", "a.example.com", true},
        {"*.example.com", "example.com", false},
        {"*.example.com", "aexample.com", false},
        {"*.example.com", ".example.com", false},
        {"*.com", "example.com", true},
        {"*", "anything.at.all", true},
        {"*.example.com", "example.com.evil.net", false},
    };
    for (const Case& c : kCases) {
        auto pattern = parse_pattern(c.pattern);
        ASSERT_TRUE(pattern) << c.pattern;
        EXPECT_EQ(pattern->matches(c.name), c.matches) << c.pattern << " " << c.name;
    }
    for (const char* text :
         {"", "*.", "**", "*.*", "a.*", "*a.com", "*.*.com", "*.1", "*.1.2.3.4", "1.2.3.4", "::1",
          "example.com.", "*.example.com.", "https://example.com", "example.com:443"})
        EXPECT_FALSE(parse_pattern(text)) << text;
}

}  // namespace
}  // namespace gb::net
