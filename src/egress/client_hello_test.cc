// SPDX-License-Identifier: Apache-2.0
#include "egress/client_hello.h"

#include <functional>

#include <gtest/gtest.h>
#include <openssl/ssl.h>

namespace gb::egress {
namespace {

using State = ClientHello::State;

// What OpenSSL's client sends first.
std::string make_hello(const std::function<void(SSL_CTX*, SSL*)>& shape) {
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(context, 0);
    shape(context, nullptr);
    SSL* ssl = SSL_new(context);
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    shape(nullptr, ssl);
    SSL_set_connect_state(ssl);
    SSL_do_handshake(ssl);
    char* data = nullptr;
    const long size = BIO_get_mem_data(SSL_get_wbio(ssl), &data);
    std::string out(data, static_cast<std::size_t>(size));
    SSL_free(ssl);
    SSL_CTX_free(context);
    return out;
}

std::string named(const char* host, std::string_view alpn = "") {
    return make_hello([&](SSL_CTX*, SSL* ssl) {
        if (ssl == nullptr) return;
        if (host != nullptr) SSL_set_tlsext_host_name(ssl, host);
        SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>(alpn.data()),
                            static_cast<unsigned>(alpn.size()));
    });
}

// An extension of any type and content, also ones that OpenSSL has of its own when it is told not to send
// them.
std::string with_extension(unsigned type, std::string content) {
    return make_hello([&](SSL_CTX* context, SSL*) {
        if (context == nullptr) return;
        SSL_CTX_add_custom_ext(
            context, type, SSL_EXT_CLIENT_HELLO,
            [](SSL*, unsigned, unsigned, const unsigned char** out, std::size_t* size, X509*, std::size_t,
               int*, void* what) {
                const auto& text = *static_cast<std::string*>(what);
                *out = reinterpret_cast<const unsigned char*>(text.data());
                *size = text.size();
                return 1;
            },
            nullptr, &content, nullptr, nullptr);
    });
}

std::string big_endian(std::size_t number, int bytes) {
    std::string out;
    for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8)
        out.push_back(static_cast<char>(number >> shift & 0xff));
    return out;
}

// A hello by hand, with these extensions: type and content.
std::string raw_hello(const std::vector<std::pair<unsigned, std::string>>& extensions,
                      std::size_t record = 16384) {
    std::string list;
    for (const auto& [type, content] : extensions)
        list += big_endian(type, 2) + big_endian(content.size(), 2) + content;
    std::string body = "\x03\x03" + std::string(32, 'r') + std::string(1, '\0') + big_endian(2, 2) +
                       "\x13\x01" + std::string("\x01\0", 2) + big_endian(list.size(), 2) + list;
    std::string message = "\x01" + big_endian(body.size(), 3) + body, out;
    for (std::size_t at = 0; at < message.size(); at += record) {
        const std::string part = message.substr(at, record);
        out += "\x16\x03\x01" + big_endian(part.size(), 2) + part;
    }
    return out;
}

std::string sni(std::string_view name, unsigned kind = 0) {
    return big_endian(kind, 1) + big_endian(name.size(), 2) + std::string(name);
}
std::string sni_list(const std::string& entries) {
    return big_endian(entries.size(), 2) + entries;
}

// Whole, cut at each byte, and byte by byte.
ClientHello read(const std::string& bytes) {
    const ClientHello whole = read_client_hello(bytes);
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
        ClientHelloReader reader;
        const State before = reader.feed(std::string_view(bytes).substr(0, cut)).state;
        EXPECT_TRUE(before == State::needs_more || before == whole.state) << cut;
        const ClientHello& after = reader.feed(std::string_view(bytes).substr(cut));
        EXPECT_EQ(after.state, whole.state) << cut;
        EXPECT_EQ(after.sni, whole.sni) << cut;
    }
    ClientHelloReader reader;
    for (char c : bytes) reader.feed({&c, 1});
    EXPECT_EQ(reader.feed("").state, whole.state);
    EXPECT_EQ(reader.feed("").sni, whole.sni);
    EXPECT_EQ(reader.feed("").alpn, whole.alpn);
    EXPECT_EQ(reader.feed("").ech, whole.ech);
    return whole;
}

TEST(ClientHello, OpenSslsOwnInSeveralShapes) {
    const ClientHello plain = read(named("good.test"));
    EXPECT_EQ(plain.state, State::hello);
    EXPECT_EQ(plain.sni, "good.test");
    EXPECT_TRUE(plain.alpn.empty());
    EXPECT_FALSE(plain.ech);

    const ClientHello protocols = read(named("a.test", "\x02h2\x08http/1.1"));
    EXPECT_EQ(protocols.sni, "a.test");
    EXPECT_EQ(protocols.alpn, (std::vector<std::string>{"h2", "http/1.1"}));

    const ClientHello nameless = read(named(nullptr));
    EXPECT_EQ(nameless.state, State::hello);
    EXPECT_EQ(nameless.sni, std::nullopt);

    for (const int version : {TLS1_VERSION, TLS1_2_VERSION, TLS1_3_VERSION}) {
        const ClientHello one = read(make_hello([&](SSL_CTX* context, SSL* ssl) {
            if (context != nullptr) {
                SSL_CTX_set_min_proto_version(context, version);
                SSL_CTX_set_max_proto_version(context, version);
            } else {
                SSL_set_tlsext_host_name(ssl, "v.test");
            }
        }));
        EXPECT_EQ(one.state, State::hello) << version;
        EXPECT_EQ(one.sni, "v.test") << version;
    }
    const ClientHello many_groups = read(make_hello([&](SSL_CTX* context, SSL* ssl) {
        if (context != nullptr)
            SSL_CTX_set1_groups_list(context, "X25519:P-256:X448:P-521:P-384:ffdhe2048:ffdhe8192");
        if (ssl != nullptr) SSL_set_tlsext_host_name(ssl, "g.test");
    }));
    EXPECT_EQ(many_groups.sni, "g.test");
}

TEST(ClientHello, AnEncryptedOneInsideIsSeen) {
    EXPECT_TRUE(read(with_extension(0xfe0d, "anything")).ech);
    EXPECT_TRUE(read(with_extension(0xfe0d, "")).ech);
    EXPECT_FALSE(read(with_extension(0xfe0e, "anything")).ech);
    const ClientHello outer = read(raw_hello({{0xfe0d, "x"}, {0, sni_list(sni("outer.test"))}}));
    EXPECT_TRUE(outer.ech);
    EXPECT_EQ(outer.sni, "outer.test");
    EXPECT_EQ(read(raw_hello({{0xfe0d, "x"}, {0xfe0d, "y"}})).state, State::malformed);
}

TEST(ClientHello, NamesAreNotJudgedHere) {
    using std::string_literals::operator""s;
    for (const std::string& name : {"a.test\0.evil.test"s, " "s, "\r\n"s, "A.TEST."s, "127.0.0.1"s,
                                    "\xff\xfe"s, std::string(5000, 'x')}) {
        const ClientHello hello = read_client_hello(raw_hello({{0, sni_list(sni(name))}}));
        EXPECT_EQ(hello.state, State::hello);
        EXPECT_EQ(hello.sni, name);
    }
}

TEST(ClientHello, OneNameOrNone) {
    const std::string one = sni("a.test"), two = sni("b.test");
    EXPECT_EQ(read(raw_hello({})).state, State::hello);
    EXPECT_EQ(read(raw_hello({{0, sni_list(one)}})).sni, "a.test");
    for (const std::string& content :
         {sni_list(one + two), sni_list(one + one), sni_list(""), std::string(), sni_list(sni("")),
          sni_list(sni("a.test", 1)), sni_list(sni("a.test", 1) + one), sni_list(one) + "x",
          sni_list(one).substr(1), sni_list(one).substr(0, 8), big_endian(100, 2) + one, sni_list(one + "x")})
        EXPECT_EQ(read(raw_hello({{0, content}})).state, State::malformed);
    EXPECT_EQ(read(raw_hello({{0, sni_list(one)}, {0, sni_list(one)}})).state, State::malformed);
    EXPECT_EQ(read(raw_hello({{0, sni_list(one)}, {16, "x"}})).state, State::malformed);
    EXPECT_EQ(read(raw_hello({{0, sni_list(one)}, {16, big_endian(1, 2) + big_endian(0, 1)}})).state,
              State::malformed);
}

TEST(ClientHello, InManyRecords) {
    for (const std::size_t record : {1UZ, 2UZ, 5UZ, 50UZ}) {
        const ClientHello hello = read(raw_hello({{0, sni_list(sni("a.test"))}}, record));
        EXPECT_EQ(hello.state, State::hello) << record;
        EXPECT_EQ(hello.sni, "a.test");
    }
}

TEST(ClientHello, OtherProtocols) {
    using std::string_literals::operator""s;
    for (const std::string& bytes :
         {"GET / HTTP/1.1\r\n\r\n"s, "SSH-2.0-OpenSSH"s, "\0"s, "\x15\x03\x01\0\x02\x02\x28"s,
          "\x80\x2e\x01\x03\x01\0\x15\0\0\0\x10"s, "\x17\x03\x03\0\x01x"s})
        EXPECT_EQ(read(bytes).state, State::not_tls) << bytes;
}

TEST(ClientHello, Damaged) {
    using std::string_literals::operator""s;
    EXPECT_EQ(read_client_hello("").state, State::needs_more);
    EXPECT_EQ(read_client_hello("\x16").state, State::needs_more);
    std::string good = named("good.test");
    for (const std::string& bytes :
         {"\x16\x02\x01\0\x05hello"s, "\x16\x03\x01\xff\xff"s + std::string(100, 'x'),
          "\x16\x03\x01\0\x04\x02\0\0\0"s, "\x16\x03\x01\0\x05\x01\0\0\x01x"s})
        EXPECT_EQ(read(bytes).state, State::malformed);
    EXPECT_EQ(read(good.substr(0, good.size() - 1)).state, State::needs_more);
    good[5 + 4 + 2 + 32] = '\x7f';  // the length of the session's id
    EXPECT_EQ(read_client_hello(good).state, State::malformed);
}

TEST(ClientHello, ThatHasNoEnd) {
    EXPECT_NE(
        read_client_hello(raw_hello({{21, std::string(60'000, '\0')}, {0, sni_list(sni("a.test"))}})).state,
        State::needs_more);
    ClientHelloReader reader;
    std::string big = raw_hello({{21, std::string(65'000, '\0')}});
    big[6] = '\x01';  // the message's length: 128 KiB
    State state = State::needs_more;
    std::size_t fed = 0;
    while (state == State::needs_more && fed < 2 * kLargestHello) {
        const std::string_view part = std::string_view(big).substr(fed % big.size(), 1000);
        state = reader.feed(part).state;
        fed += part.size();
    }
    EXPECT_EQ(state, State::malformed);
    EXPECT_LE(fed, kLargestHello + 1000);
    EXPECT_EQ(reader.feed(named("late.test")).state, State::malformed) << "once refused, refused";
}

}  // namespace
}  // namespace gb::egress
