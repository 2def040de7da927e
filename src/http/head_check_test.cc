// SPDX-License-Identifier: Apache-2.0
#include "http/head_check.h"

#include <gtest/gtest.h>

namespace gb::http {
namespace {

using Kind = HeadCheck::Kind;

// The same whether it comes at once or byte by byte; "" for good.
std::string verdict(Kind kind, std::string_view head) {
    HeadCheck once(kind), slow(kind);
    const auto whole = once.look(head, 1000);
    Result<bool> pieces = false;
    for (std::size_t n = 1; n <= head.size() && pieces && !*pieces; ++n)
        pieces = slow.look(head.substr(0, n), 1000);
    EXPECT_EQ(whole.has_value(), pieces.has_value()) << head;
    if (!whole || !pieces) return whole ? pieces.error().message : whole.error().message;
    EXPECT_EQ(*whole, *pieces) << head;
    return *whole ? "" : "more";
}

std::string request(std::string_view fields) {
    return verdict(Kind::request, "GET / HTTP/1.1\r\n" + std::string(fields) + "\r\n");
}

TEST(HeadCheck, GoodHeads) {
    for (std::string_view fields :
         {"", "Host: a\r\n", "Host:a\r\n", "X:\r\n", "X: \t a\tb \r\n", "Content-Length: 0\r\n",
          "X: \xc3\xa9\r\n", "transfer-encoding: Chunked\r\n", "A: 1\r\nA: 2\r\n",
          "!#$%&'*+-.^_`|~09: x\r\n"})
        EXPECT_EQ(request(fields), "") << fields;
    for (std::string_view line : {"GET / HTTP/1.0", "OPTIONS * HTTP/1.1", "GET http://a/ HTTP/1.1",
                                  "CONNECT a:443 HTTP/1.1", "X-Y /%zz/../\xff HTTP/1.1"})
        EXPECT_EQ(verdict(Kind::request, std::string(line) + "\r\n\r\n"), "") << line;
    for (std::string_view line : {"HTTP/1.1 200 OK", "HTTP/1.0 404 Not Found", "HTTP/1.1 999 ",
                                  "HTTP/1.1 204", "HTTP/1.1 200 \xc3\xa9"})
        EXPECT_EQ(verdict(Kind::answer, std::string(line) + "\r\n\r\n"), "") << line;
    EXPECT_EQ(verdict(Kind::request, "GET / HTTP/1.1\r\nHost: a\r\n"), "more");
    EXPECT_EQ(verdict(Kind::request, "GET / HTTP/1.1\r\n\r\n\0\n behind it"), "");
}

TEST(HeadCheck, WhatTwoReadersCouldUnderstandDifferently) {
    using std::string_literals::operator""s;
    for (const std::string& fields : {"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"s,
                                      "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"s,
                                      "Content-Length: 1\r\nContent-Length: 2\r\n"s,
                                      "Content-Length: 1\r\ncontent-length: 1\r\n"s,
                                      "Content-Length: 1, 1\r\n"s,
                                      "Content-Length: +1\r\n"s,
                                      "Content-Length: -1\r\n"s,
                                      "Content-Length: 0x1\r\n"s,
                                      "Content-Length:\r\n"s,
                                      "Content-Length: 1 1\r\n"s,
                                      "Content-Length: 9999999999999999999\r\n"s,
                                      "Transfer-Encoding: gzip\r\n"s,
                                      "Transfer-Encoding: gzip, chunked\r\n"s,
                                      "Transfer-Encoding: chunked, chunked\r\n"s,
                                      "Transfer-Encoding: xchunked\r\n"s,
                                      "Transfer-Encoding: \"chunked\"\r\n"s,
                                      "Transfer-Encoding:\r\n"s,
                                      "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"s,
                                      "Transfer-Encoding: \vchunked\r\n"s,
                                      "Host: a\r\n b\r\n"s,
                                      "Host: a\r\n\tb\r\n"s,
                                      " Host: a\r\n"s,
                                      "Host : a\r\n"s,
                                      "Host\t: a\r\n"s,
                                      "Host\r\n"s,
                                      ": a\r\n"s,
                                      "Ho st: a\r\n"s,
                                      "H\xc3\xb6st: a\r\n"s,
                                      "Host: a\nX: b\r\n"s,
                                      "Host: a\rX: b\r\n"s,
                                      "Host: a\0b\r\n"s,
                                      "Ho\0st: a\r\n"s,
                                      "Host: a\x01\r\n"s,
                                      "Host: a\x7f\r\n"s,
                                      "Host: a\r\r\n"s})
        EXPECT_TRUE(request(fields).starts_with("malformed HTTP message: ")) << fields << request(fields);
    for (const std::string& line :
         {""s, "GET /"s, "GET  / HTTP/1.1"s, "GET / HTTP/1.1 "s, " GET / HTTP/1.1"s, "GET / HTTP/2.0"s,
          "GET\t/\tHTTP/1.1"s, "GET / http/1.1"s, "GET / HTTP/1.2"s, "PRI * HTTP/2.0"s, "GET /a b HTTP/1.1"s,
          "G(T / HTTP/1.1"s, "GET /\x01 HTTP/1.1"s, "GET / HTTP/1.1\nX: y"s, "GET  HTTP/1.1"s,
          "\r\nGET / HTTP/1.1"s})
        EXPECT_TRUE(verdict(Kind::request, line + "\r\n\r\n").starts_with("malformed")) << line;
    EXPECT_TRUE(
        verdict(Kind::request, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").starts_with("malf"));
    for (const std::string& line :
         {"HTTP/1.1 20"s, "HTTP/1.1 2000 x"s, "HTTP/2 200"s, "HTTP/1.1  200"s, "ICY 200 OK"s,
          "HTTP/1.1 099 x"s, "HTTP/1.1 200 a\x01"s, "HTTP/1.1\t200 OK"s})
        EXPECT_TRUE(verdict(Kind::answer, line + "\r\n\r\n").starts_with("malformed")) << line;
}

TEST(HeadCheck, WhatIsWrongIsSaidBeforeTheHeadIsComplete) {
    HeadCheck check(Kind::request);
    EXPECT_FALSE(check.look("GET / HTTP/1.1\n", 1000));
}

TEST(HeadCheck, ALimit) {
    const std::string head = "GET / HTTP/1.1\r\nA: b\r\n\r\n";
    for (std::size_t most = 0; most < head.size() + 2; ++most) {
        const auto looked = HeadCheck(Kind::request).look(head + "body", most);
        EXPECT_EQ(looked.has_value(), most >= head.size()) << most;
        if (!looked) EXPECT_EQ(looked.error().code, ErrorCode::too_large);
        const auto so_far = HeadCheck(Kind::request).look(head.substr(0, most), most);
        EXPECT_TRUE(so_far && *so_far == (most >= head.size())) << "not too large yet";
    }
}

}  // namespace
}  // namespace gb::http
