// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/http_values.h"

#include <limits>

#include <gtest/gtest.h>

namespace gb::agent {
namespace {

TEST(BasicUser, TakesTheNameBeforeTheColon) {
    EXPECT_EQ(basic_user("Basic dXNlcjo="), "user");      // user:
    EXPECT_EQ(basic_user("basic cm9vdDpwdw=="), "root");  // root:pw
    EXPECT_EQ(basic_user("Bearer dXNlcjo="), std::nullopt);
    EXPECT_EQ(basic_user("Basic !!"), std::nullopt);
    EXPECT_EQ(basic_user(""), std::nullopt);
}

TEST(HeaderValue, ParametersQuotedAndNot) {
    const HeaderValue value = parse_header_value("Form-Data; name=file ; filename=\"a;\\\"b\\c\"; flag; x=");
    EXPECT_EQ(value.value, "form-data");
    EXPECT_EQ(*value.find("name"), "file");
    EXPECT_EQ(*value.find("filename"), "a;\"b\\c");
    EXPECT_EQ(value.find("flag"), nullptr);
    EXPECT_EQ(*value.find("x"), "");
    EXPECT_EQ(parse_header_value("multipart/form-data; boundary=\"x y\"").parameters.at(0).second, "x y");
    EXPECT_EQ(*parse_header_value("a; b=\"unclosed").find("b"), "unclosed");
}

// F10
TEST(FormFileName, DecodesWhatClientsEncode) {
    EXPECT_EQ(form_file_name(parse_header_value("f; filename=\"a%22b%0Ac%20d 100%.txt\"")),
              "a\"b\nc%20d 100%.txt");
    EXPECT_EQ(form_file_name(parse_header_value("f; filename=\"tab%09%1b%7F%2\"")), "tab\t\x1B%7F%2");
    EXPECT_EQ(form_file_name(parse_header_value("f; filename=x; filename*=UTF-8''%C3%BC")), "\xC3\xBC");
    EXPECT_EQ(form_file_name(parse_header_value("f; name=x")), std::nullopt);
}

TEST(ContentDisposition, AddsTheExtendedFormWhenNeeded) {
    EXPECT_EQ(content_disposition("a b.txt"), "inline; filename=\"a b.txt\"");
    EXPECT_EQ(content_disposition("a\"b"), "inline; filename=\"a\\\"b\"");
    EXPECT_EQ(content_disposition("\xC3\xBC\n%"), "inline; filename=\"____\"; filename*=UTF-8''%C3%BC%0A%25");
}

TEST(Range, OneRangeOnly) {
    const auto range = [](std::string_view text, std::uint64_t size) -> std::string {
        const auto parsed = parse_range(text, size);
        if (!parsed) return "unsatisfiable";
        if (!*parsed) return "ignored";
        return std::to_string((*parsed)->first) + "-" + std::to_string((*parsed)->last);
    };
    EXPECT_EQ(range("bytes=0-4", 10), "0-4");
    EXPECT_EQ(range("bytes=5-", 10), "5-9");
    EXPECT_EQ(range("bytes=-3", 10), "7-9");
    EXPECT_EQ(range("bytes=-30", 10), "0-9");
    EXPECT_EQ(range("bytes=5-100", 10), "5-9");
    EXPECT_EQ(range("bytes=10-", 10), "unsatisfiable");
    EXPECT_EQ(range("bytes=-0", 10), "unsatisfiable");
    EXPECT_EQ(range("bytes=0-", 0), "unsatisfiable");
    for (const char* ignored : {"", "bytes=", "bytes=a-b", "bytes=3-1", "bytes=0-1,3-4", "lines=0-1",
                                "bytes=99999999999999999999-"})
        EXPECT_EQ(range(ignored, 10), "ignored") << ignored;
}

TEST(AcceptEncoding, GzipIsPreferredOnlyByWhoAsksForNothingElse) {
    EXPECT_TRUE(prefers_gzip("gzip"));
    EXPECT_TRUE(prefers_gzip(" GZIP;q=0.5 "));
    EXPECT_TRUE(prefers_gzip("gzip, deflate, identity;q=0"));
    EXPECT_FALSE(prefers_gzip("gzip, deflate, br"));
    EXPECT_FALSE(prefers_gzip("*"));
    EXPECT_FALSE(prefers_gzip("gzip;q=0"));
    EXPECT_FALSE(prefers_gzip(""));
}

TEST(AcceptEncoding, IdentityIsAllowedUnlessRefused) {
    EXPECT_TRUE(accepts_coding("", "identity"));
    EXPECT_FALSE(accepts_coding("", "gzip"));
    EXPECT_TRUE(accepts_coding("gzip, deflate, br", "gzip"));
    EXPECT_TRUE(accepts_coding("gzip, deflate, br", "identity"));
    EXPECT_FALSE(accepts_coding("gzip, identity;q=0", "identity"));
    EXPECT_FALSE(accepts_coding("gzip, *;q=0.0", "identity"));
    EXPECT_TRUE(accepts_coding("*;q=0, identity;q=0.5", "identity"));
    EXPECT_FALSE(accepts_coding("gzip;q=0", "gzip"));
    EXPECT_TRUE(accepts_coding("*", "gzip"));
}

TEST(HttpDate, RoundTrip) {
    EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
    EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
    EXPECT_EQ(parse_http_date("yesterday"), std::nullopt);
    EXPECT_EQ(parse_http_date("Sun, 06 Xxx 1994 08:49:37 GMT"), std::nullopt);
}

TEST(HttpDate, WhatIsNoDateIsNotMadeOne) {
    for (const char* text :
         {"Mon, 06 Nov 1994 08:49:37 GMT", "Sun, 36 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
          "Sun, 06 Nov 1994 08:-9:37 GMT", "Sun, 06 Nov 1994 08:49:60 GMT", "Sun, 06 Nov -994 08:49:37 GMT",
          "Sun, 06-Nov-1994 08:49:37 GMT", "Sun, 06 Nov 1994 08.49.37 GMT", "Sun; 06 Nov 1994 08:49:37 GMT"})
        EXPECT_EQ(parse_http_date(text), std::nullopt) << text;
}

TEST(HttpDate, FilesOfAnyTime) {
    EXPECT_EQ(http_date(-62'167'219'200), "Sat, 01 Jan 0000 00:00:00 GMT");
    EXPECT_EQ(http_date(std::numeric_limits<std::time_t>::min()), http_date(-62'167'219'200));
    EXPECT_EQ(http_date(std::numeric_limits<std::time_t>::max()), "Fri, 31 Dec 9999 23:59:59 GMT");
    EXPECT_EQ(parse_http_date("Fri, 31 Dec 9999 23:59:59 GMT"), 253'402'300'799);
}

// F17
TEST(Metadata, KeysAreTokensAndValuesPrintable) {
    const auto good = metadata_headers({{"X-Metadata-Author", "me, myself"}, {"Other", "x"}});
    ASSERT_TRUE(good);
    EXPECT_EQ(*good, (Metadata{{"author", "me, myself"}}));
    EXPECT_FALSE(metadata_headers({{"X-Metadata-", "x"}}));
    EXPECT_FALSE(metadata_headers({{"X-Metadata-a", "line\nbreak"}}));
    EXPECT_FALSE(metadata_headers({{"X-Metadata-a", "\xC3\xBC"}}));
    EXPECT_FALSE(metadata_headers({{"X-Metadata-a b", "x"}}));
}

}  // namespace
}  // namespace gb::agent
