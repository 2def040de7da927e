// SPDX-License-Identifier: Apache-2.0
#include "http/tls_handshake.h"

#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <openssl/x509v3.h>

#include "base/error_tuple.h"
#include "http/client.h"
#include "http/https_testing.h"
#include "http/socket_pair_testing.h"

namespace gb::http {
namespace {

using Context = std::shared_ptr<SSL_CTX>;

struct Wish {
    std::string names = "DNS:good.test";  // as OpenSSL writes them
    long from_s = -3600, to_s = 86400;
    const char* usage = "serverAuth";
    std::string common_name = "server";
};

// An authority of the test's own, and servers that it vouches for.
class Authority {
  public:
    Authority() : key_(EVP_EC_gen("P-256"), EVP_PKEY_free) {
        certificate_ = make(nullptr, {"", -3600, 86400, nullptr, "test authority"}, key_.get());
    }
    std::string pem() const {
        BIO* bio = BIO_new(BIO_s_mem());
        PEM_write_bio_X509(bio, certificate_.get());
        char* data = nullptr;
        const long size = BIO_get_mem_data(bio, &data);
        std::string out(data, static_cast<std::size_t>(size));
        BIO_free(bio);
        return out;
    }
    Context server(const Wish& wish) const {
        std::shared_ptr<EVP_PKEY> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
        auto certificate = make(certificate_.get(), wish, key.get());
        Context context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
        SSL_CTX_use_certificate(context.get(), certificate.get());
        SSL_CTX_use_PrivateKey(context.get(), key.get());
        return context;
    }

  private:
    std::shared_ptr<X509> make(X509* issuer, const Wish& wish, EVP_PKEY* key) const {
        std::shared_ptr<X509> c(X509_new(), X509_free);
        X509_set_version(c.get(), 2);
        ASN1_INTEGER_set(X509_get_serialNumber(c.get()), issuer != nullptr ? 2 : 1);
        X509_gmtime_adj(X509_getm_notBefore(c.get()), wish.from_s);
        X509_gmtime_adj(X509_getm_notAfter(c.get()), wish.to_s);
        X509_set_pubkey(c.get(), key);
        X509_NAME_add_entry_by_txt(X509_get_subject_name(c.get()), "CN", MBSTRING_ASC,
                                   reinterpret_cast<const unsigned char*>(wish.common_name.c_str()), -1, -1,
                                   0);
        X509_set_issuer_name(c.get(), X509_get_subject_name(issuer != nullptr ? issuer : c.get()));
        auto add = [&](int kind, const std::string& value) {
            X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
            X509_add_ext(c.get(), extension, -1);
            X509_EXTENSION_free(extension);
        };
        if (issuer == nullptr) add(NID_basic_constraints, "critical,CA:TRUE");
        if (!wish.names.empty()) add(NID_subject_alt_name, wish.names);
        if (wish.usage != nullptr) add(NID_ext_key_usage, wish.usage);
        X509_sign(c.get(), key_.get(), EVP_sha256());
        return c;
    }
    std::shared_ptr<EVP_PKEY> key_;
    std::shared_ptr<X509> certificate_;
};

class TlsHandshake : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(make_dirs(dir_));
        ASSERT_TRUE(write_file_atomic(dir_ / "roots.pem", authority_.pem()));
        auto made = ClientTls::make(dir_ / "roots.pem");
        ASSERT_TRUE(made) << made.error().message;
        client_ = *made;
    }
    void TearDown() override { ASSERT_TRUE(remove_tree(dir_)); }

    void run(std::function<awaitable<void>()> body) {
        bool done = false;
        asio::co_spawn(io_, body(), [&](const std::exception_ptr& failure) {
            done = true;
            if (failure) std::rethrow_exception(failure);
        });
        io_.restart();
        io_.run_for(std::chrono::minutes(10));
        EXPECT_TRUE(done);
    }
    using Streams = std::tuple<Result<std::shared_ptr<Stream>>, Result<std::shared_ptr<Stream>>>;
    // The client's end and the server's.
    awaitable<Streams> shake(Context server, std::string host) {
        using namespace asio::experimental::awaitable_operators;
        auto [one, two] = co_await testing::socket_pair(io_);
        co_return co_await (client_->connect(std::move(one), host, std::chrono::seconds(10)) &&
                            accept_tls(std::move(two), server, "", std::chrono::seconds(10)));
    }
    std::string refusal(Wish wish, std::string host = "good.test") {
        std::string out;
        run([&]() -> awaitable<void> {
            auto [client, server] = co_await shake(authority_.server(wish), host);
            out = client ? "" : client.error().message;
            if (!client) EXPECT_EQ(client.error().code, ErrorCode::failed_precondition) << out;
        });
        return out;
    }

    const std::filesystem::path dir_ = std::filesystem::temp_directory_path() / ("gb-tls-" + random_id(10));
    asio::io_context io_;
    Authority authority_;
    std::shared_ptr<ClientTls> client_;
};

TEST_F(TlsHandshake, ClientAndServerSpeakHttp1) {
    run([&]() -> awaitable<void> {
        auto [client, server] = co_await shake(authority_.server({}), "good.test");
        EXPECT_TRUE(client && server);
        if (!client || !server) co_return;
        Server http(io_.get_executor(), [](Exchange& exchange) -> awaitable<void> {
            auto body = co_await exchange.body.read_all(1 << 20);
            co_await exchange.response.send(200, {}, *body + (exchange.tls ? " tls" : ""));
        });
        asio::co_spawn(io_, http.serve(*server, {}), asio::detached);
        ClientConnection connection(*client, {.strict = true});
        for (int i = 0; i < 3; ++i) {
            auto answer = co_await connection.request({"POST", "/", {{"Host", "good.test"}}}, "hi");
            EXPECT_TRUE(answer);
            EXPECT_EQ(answer ? answer->body : answer.error().message, "hi tls");
            EXPECT_TRUE(connection.reusable());
            EXPECT_TRUE(connection.still_open());
        }
        EXPECT_EQ(connection.bare_body(), 0U);
        co_await (*server)->shutdown_send();
        char c = 0;
        co_await (*client)->socket().async_wait(tcp::socket::wait_read, asio::use_awaitable);
        EXPECT_FALSE(connection.still_open());
        auto [ec, n] = co_await (*client)->read_some(asio::buffer(&c, 1));
        EXPECT_TRUE(ec);
        http.stop();
    });
}

TEST_F(TlsHandshake, NamesAndAddressesThatTheCertificateIsFor) {
    EXPECT_EQ(refusal({"DNS:a.test,DNS:good.test"}), "");
    EXPECT_EQ(refusal({"DNS:*.good.test"}, "a.good.test"), "");
    EXPECT_EQ(refusal({"IP:192.0.2.7"}, "192.0.2.7"), "");
    EXPECT_EQ(refusal({"IP:2001:db8::7"}, "2001:db8::7"), "");
    EXPECT_EQ(refusal({"DNS:GOOD.test"}), "");
}

TEST_F(TlsHandshake, EachCheckIsNamed) {
    const std::string prefix = "the certificate was not accepted: ";
    EXPECT_EQ(refusal({"DNS:other.test"}), prefix + "hostname mismatch");
    EXPECT_EQ(refusal({"DNS:g*d.test"}), prefix + "hostname mismatch") << "a wildcard inside a label";
    EXPECT_EQ(refusal({"DNS:*.good.test"}, "b.a.good.test"), prefix + "hostname mismatch");
    EXPECT_EQ(refusal({"DNS:good.test.evil.test"}), prefix + "hostname mismatch");
    EXPECT_EQ(refusal({"", -3600, 86400, "serverAuth", "good.test"}), prefix + "hostname mismatch")
        << "a common name is no name";
    EXPECT_EQ(refusal({"DNS:192.0.2.7"}, "192.0.2.7"), prefix + "IP address mismatch");
    EXPECT_EQ(refusal({"DNS:good.test", -86400, -3600}), prefix + "certificate has expired");
    EXPECT_EQ(refusal({"DNS:good.test", 3600, 86400}), prefix + "certificate is not yet valid");
    EXPECT_NE(refusal({"DNS:good.test", -3600, 86400, "clientAuth"}).find("purpose"), std::string::npos);
    client_ = *ClientTls::make();  // the system's roots alone
    EXPECT_TRUE(refusal({}).starts_with(prefix)) << refusal({});
}

TEST_F(TlsHandshake, NamesThatNoServerHas) {
    run([&]() -> awaitable<void> {
        for (const std::string& host : {std::string(), std::string("good.test\0.evil.test", 20)}) {
            auto [one, two] = co_await testing::socket_pair(io_);
            auto client = co_await client_->connect(std::move(one), host, std::chrono::seconds(1));
            EXPECT_FALSE(client);
            if (!client) EXPECT_EQ(client.error().code, ErrorCode::invalid_argument);
        }
    });
}

TEST_F(TlsHandshake, OldVersionsAndOtherProtocolsAreRefused) {
    run([&]() -> awaitable<void> {
        Context old = authority_.server({});
        SSL_CTX_set_security_level(old.get(), 0);
        SSL_CTX_set_max_proto_version(old.get(), TLS1_1_VERSION);
        auto [client, server] = co_await shake(old, "good.test");
        EXPECT_FALSE(client);

        Context new_enough = authority_.server({});
        SSL_CTX_set_max_proto_version(new_enough.get(), TLS1_2_VERSION);
        auto [client2, server2] = co_await shake(new_enough, "good.test");
        EXPECT_TRUE(client2);

        auto [one, two] = co_await testing::socket_pair(io_);
        const std::string plain = "HTTP/1.1 400 Bad Request\r\n\r\n";
        two.send(asio::buffer(plain));
        auto client3 = co_await client_->connect(std::move(one), "good.test", std::chrono::seconds(10));
        EXPECT_FALSE(client3);
        if (!client3) EXPECT_EQ(client3.error().code, ErrorCode::unavailable);
    });
}

TEST_F(TlsHandshake, ASilentPeerHasALimitOfTime) {
    run([&]() -> awaitable<void> {
        auto [one, two] = co_await testing::socket_pair(io_);
        auto client = co_await client_->connect(std::move(one), "good.test", std::chrono::milliseconds(50));
        EXPECT_FALSE(client);
        if (!client) EXPECT_EQ(client.error().code, ErrorCode::deadline_exceeded);
        auto [three, four] = co_await testing::socket_pair(io_);
        auto server =
            co_await accept_tls(std::move(four), authority_.server({}), "", std::chrono::milliseconds(50));
        EXPECT_FALSE(server);
        if (!server) EXPECT_EQ(server.error().code, ErrorCode::deadline_exceeded);
    });
}

TEST_F(TlsHandshake, WhatWasReadAlreadyCounts) {
    using namespace asio::experimental::awaitable_operators;
    run([&]() -> awaitable<void> {
        for (const std::size_t most : {1UZ, 7UZ, 100UZ, 100'000UZ}) {
            auto [one, two] = co_await testing::socket_pair(io_);
            auto server = [&]() -> awaitable<Result<std::shared_ptr<Stream>>> {
                std::string early(most, '\0');
                auto [ec, n] = co_await two.async_read_some(asio::buffer(early), kErrorTuple);
                early.resize(n);
                co_return co_await accept_tls(std::move(two), authority_.server({}), early,
                                              std::chrono::seconds(10));
            };
            auto [client, accepted] = co_await (
                client_->connect(std::move(one), "good.test", std::chrono::seconds(10)) && server());
            EXPECT_TRUE(client && accepted) << most;
        }
        auto [one, two] = co_await testing::socket_pair(io_);
        auto http = co_await accept_tls(std::move(two), authority_.server({}), "GET / HTTP/1.1\r\n\r\n",
                                        std::chrono::seconds(10));
        EXPECT_FALSE(http);
        if (!http) EXPECT_EQ(http.error().code, ErrorCode::invalid_argument);
    });
}

TEST_F(TlsHandshake, ABundleThatIsNoneIsNamed) {
    ASSERT_TRUE(write_file_atomic(dir_ / "bad.pem", "no certificate"));
    for (const char* name : {"bad.pem", "missing.pem"}) {
        auto made = ClientTls::make(dir_ / name);
        ASSERT_FALSE(made);
        EXPECT_NE(made.error().message.find(name), std::string::npos);
    }
}

}  // namespace
}  // namespace gb::http
