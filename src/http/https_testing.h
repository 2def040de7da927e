// SPDX-License-Identifier: Apache-2.0
// For tests: certificates made on the spot, a client of TLS, and one of HTTP/2.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/error_tuple.h"
#include "base/file.h"
#include "base/ids.h"
#include "http/server.h"
#include "http/tls.h"

namespace gb::http::testing {

struct PemPair {
    std::string certificate, key;
};

// Self-signed, for `name`, valid for a day.
inline PemPair make_certificate(const std::string& name, const char* passphrase = nullptr) {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = X509_new();
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
    X509_set_pubkey(certificate, key);
    X509_NAME* subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(certificate, subject);
    X509_sign(certificate, key, EVP_sha256());
    auto text = [](auto write) {
        BIO* bio = BIO_new(BIO_s_mem());
        write(bio);
        char* data = nullptr;
        const long size = BIO_get_mem_data(bio, &data);
        std::string out(data, static_cast<std::size_t>(size));
        BIO_free(bio);
        return out;
    };
    PemPair out;
    out.certificate = text([&](BIO* bio) { PEM_write_bio_X509(bio, certificate); });
    out.key = text([&](BIO* bio) {
        PEM_write_bio_PrivateKey(bio, key, passphrase != nullptr ? EVP_aes_128_cbc() : nullptr, nullptr, 0,
                                 nullptr, const_cast<char*>(passphrase));
    });
    X509_free(certificate);
    EVP_PKEY_free(key);
    return out;
}

// A TLS server and its clients on one io_context, run in the test's thread.
class HttpsTest : public ::testing::Test {
  protected:
    using TlsSocket = asio::ssl::stream<tcp::socket>;

    void SetUp() override {
        ASSERT_TRUE(make_dirs(dir_));
        install(make_certificate("first"));
    }
    void TearDown() override {
        server_.reset();
        io_.restart();
        io_.run_for(std::chrono::seconds(2));  // what is left of connections; ends when nothing is
        ASSERT_TRUE(remove_tree(dir_));
    }

    void install(const PemPair& pair) {
        ASSERT_TRUE(write_file_atomic(files_.certificate_chain, pair.certificate));
        ASSERT_TRUE(write_file_atomic(files_.private_key, pair.key, 0600));
    }

    void start(Handler handler, ServerOptions options = {}) {
        auto tls = ServerTls::load(files_);
        ASSERT_TRUE(tls) << tls.error().message;
        tls_ = *tls;
        server_ = std::make_unique<Server>(io_.get_executor(), std::move(handler), options);
        auto where = server_->listen_tls({asio::ip::make_address("127.0.0.1"), 0}, tls_);
        ASSERT_TRUE(where) << where.error().message;
        endpoint_ = *where;
    }

    void run(std::function<awaitable<void>()> client) {
        bool done = false;
        asio::co_spawn(io_, client(), [&](const std::exception_ptr& failure) {
            done = true;
            server_->stop();
            if (failure) std::rethrow_exception(failure);
        });
        io_.run_for(std::chrono::minutes(10));
        EXPECT_TRUE(done) << "the client did not finish";
    }

    // Looks until it is so; the test's own limit of time ends it otherwise.
    awaitable<void> until(std::function<bool()> so) {
        asio::steady_timer pause(io_);
        while (!so()) {
            pause.expires_after(std::chrono::milliseconds(10));
            co_await pause.async_wait(asio::use_awaitable);
        }
    }

    // `protocols` as ALPN writes them: each behind its length.
    std::unique_ptr<TlsSocket> make_client(std::string_view protocols) {
        asio::ssl::context context(asio::ssl::context::tls_client);
        auto client = std::make_unique<TlsSocket>(io_, context);
        if (!protocols.empty())
            SSL_set_alpn_protos(client->native_handle(),
                                reinterpret_cast<const unsigned char*>(protocols.data()),
                                static_cast<unsigned>(protocols.size()));
        return client;
    }

    awaitable<std::unique_ptr<TlsSocket>> connect(std::string_view protocols = "\x08http/1.1") {
        auto client = make_client(protocols);
        co_await client->next_layer().async_connect(endpoint_, asio::use_awaitable);
        client->next_layer().set_option(tcp::no_delay(true));
        co_await client->async_handshake(TlsSocket::client, asio::use_awaitable);
        co_return client;
    }

    static std::string server_name(TlsSocket& client) {
        X509* certificate = SSL_get1_peer_certificate(client.native_handle());
        char name[64] = "";
        X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
        X509_free(certificate);
        return name;
    }

    // Sends bytes as they are and returns all that comes back until the server closes, and how it did.
    awaitable<std::pair<std::string, boost::system::error_code>> raw(std::string bytes) {
        auto client = co_await connect();
        co_await asio::async_write(*client, asio::buffer(bytes), asio::use_awaitable);
        std::string answer;
        std::array<char, 16384> room;
        for (;;) {
            auto [ec, n] = co_await client->async_read_some(asio::buffer(room), kErrorTuple);
            answer.append(room.data(), n);
            if (ec) co_return std::pair(answer, ec);
        }
    }

    const std::filesystem::path dir_ = std::filesystem::temp_directory_path() / ("gb-https-" + random_id(10));
    const TlsFiles files_{dir_ / "chain.pem", dir_ / "key.pem"};
    asio::io_context io_;
    std::shared_ptr<ServerTls> tls_;
    std::unique_ptr<Server> server_;
    tcp::endpoint endpoint_;
};

// A client of HTTP/2 that does as it is told, also what a good one would not.
class H2Client {
  public:
    struct Request {
        std::deque<std::string> body;  // what is left to send; may be added to, then resume()
        bool body_ends = true;
        bool reading = true;  // false: its window is not given back
        std::size_t front_at = 0, sent = 0, received = 0;
        bool keep = true;  // the body of the answer
        // The answer.
        int status = 0, interim = 0;
        std::map<std::string, std::string> headers;
        std::string text;
        bool ended = false, closed = false;
        std::uint32_t error = 0;
    };

    H2Client(std::unique_ptr<asio::ssl::stream<tcp::socket>> socket, std::uint32_t window = 1 << 20)
        : socket_(std::move(socket)) {
        nghttp2_session_callbacks* callbacks = nullptr;
        nghttp2_session_callbacks_new(&callbacks);
        nghttp2_session_callbacks_set_on_header_callback(
            callbacks,
            [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
               const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* user) {
                Request& r = self(user).requests_[frame->hd.stream_id];
                std::string key(reinterpret_cast<const char*>(name), name_size);
                std::string text(reinterpret_cast<const char*>(value), value_size);
                if (key == ":status") {
                    if (text.starts_with('1'))
                        r.interim = std::stoi(text);
                    else
                        r.status = std::stoi(text);
                }
                r.headers[key] = text;
                return 0;
            });
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
            callbacks, [](nghttp2_session* session, std::uint8_t, std::int32_t id, const std::uint8_t* data,
                          std::size_t size, void* user) {
                Request& r = self(user).requests_[id];
                if (r.keep) r.text.append(reinterpret_cast<const char*>(data), size);
                r.received += size;
                nghttp2_session_consume_connection(session, size);
                if (r.reading)
                    nghttp2_session_consume_stream(session, id, size);
                else
                    self(user).withheld_[id] += size;
                return 0;
            });
        nghttp2_session_callbacks_set_on_frame_recv_callback(
            callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
                if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
                    (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
                    self(user).requests_[frame->hd.stream_id].ended = true;
                if (frame->hd.type == NGHTTP2_GOAWAY) self(user).goaway_ = frame->goaway.error_code;
                return 0;
            });
        nghttp2_session_callbacks_set_on_stream_close_callback(
            callbacks, [](nghttp2_session*, std::int32_t id, std::uint32_t error, void* user) {
                Request& r = self(user).requests_[id];
                r.closed = true;
                r.error = error;
                return 0;
            });
        nghttp2_option* option = nullptr;
        nghttp2_option_new(&option);
        nghttp2_option_set_no_auto_window_update(option, 1);
        nghttp2_option_set_no_http_messaging(option, 1);  // what is malformed is sent too
        nghttp2_session_client_new2(&session_, callbacks, this, option);
        nghttp2_option_del(option);
        nghttp2_session_callbacks_del(callbacks);
        const nghttp2_settings_entry settings{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window};
        nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &settings, 1);
        nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, 1 << 24);
    }
    ~H2Client() { nghttp2_session_del(session_); }
    H2Client(const H2Client&) = delete;
    H2Client& operator=(const H2Client&) = delete;

    std::string authority = "host";  // of the requests to come

    // Headers beside the pseudo-headers; no body unless `body` is given.
    std::int32_t request(const std::string& method, const std::string& path, const Headers& headers = {},
                         std::optional<std::string> body = {}, bool body_ends = true) {
        std::vector<std::pair<std::string, std::string>> fields{
            {":method", method}, {":scheme", "https"}, {":authority", authority}, {":path", path}};
        for (const auto& item : headers.items()) fields.push_back(item);
        std::vector<nghttp2_nv> list;
        for (auto& [name, value] : fields)
            list.push_back({reinterpret_cast<std::uint8_t*>(name.data()),
                            reinterpret_cast<std::uint8_t*>(value.data()), name.size(), value.size(),
                            NGHTTP2_NV_FLAG_NONE});
        nghttp2_data_provider provider{{.ptr = this}, give};
        const std::int32_t id = nghttp2_submit_request(session_, nullptr, list.data(), list.size(),
                                                       body ? &provider : nullptr, nullptr);
        if (id < 0) throw std::runtime_error("nghttp2_submit_request");
        Request& r = requests_[id];
        if (body && !body->empty()) r.body.push_back(std::move(*body));
        r.body_ends = body_ends;
        return id;
    }
    void add_body(std::int32_t id, std::string piece, bool ends) {
        requests_[id].body.push_back(std::move(piece));
        requests_[id].body_ends = ends;
        nghttp2_session_resume_data(session_, id);
    }
    void read_on(std::int32_t id) {
        requests_[id].reading = true;
        nghttp2_session_consume_stream(session_, id, std::exchange(withheld_[id], 0));
    }
    void reset(std::int32_t id, std::uint32_t error = NGHTTP2_CANCEL) {
        nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, error);
    }
    void ping() { nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr); }

    Request& operator[](std::int32_t id) { return requests_[id]; }
    [[nodiscard]] std::optional<std::uint32_t> goaway() const { return goaway_; }
    [[nodiscard]] bool gone() const { return gone_; }
    nghttp2_session* session() { return session_; }
    asio::ssl::stream<tcp::socket>& socket() { return *socket_; }

    // Sends and receives until it is so, or the connection ends.
    awaitable<void> until(std::function<bool()> so) {
        std::array<std::uint8_t, 65536> room;
        for (;;) {
            co_await flush();
            if (so() || gone_) co_return;
            auto [ec, n] = co_await socket_->async_read_some(asio::buffer(room), kErrorTuple);
            if (ec || nghttp2_session_mem_recv(session_, room.data(), n) < 0) gone_ = true;
        }
    }
    awaitable<void> answer(std::int32_t id) {
        return until([this, id] { return requests_[id].closed; });
    }
    awaitable<void> flush() {
        for (;;) {
            std::string out;
            while (out.size() < 65536) {
                const std::uint8_t* bytes = nullptr;
                const ssize_t n = nghttp2_session_mem_send(session_, &bytes);
                if (n <= 0) break;
                out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
            }
            if (out.empty() || gone_) co_return;
            auto [ec, n] = co_await asio::async_write(*socket_, asio::buffer(out), kErrorTuple);
            if (ec) gone_ = true;
        }
    }

  private:
    static H2Client& self(void* user) { return *static_cast<H2Client*>(user); }

    static ssize_t give(nghttp2_session*, std::int32_t id, std::uint8_t* room, std::size_t size,
                        std::uint32_t* flags, nghttp2_data_source*, void* user) {
        Request& r = self(user).requests_[id];
        if (r.body.empty()) {
            if (!r.body_ends) return NGHTTP2_ERR_DEFERRED;
            *flags |= NGHTTP2_DATA_FLAG_EOF;
            return 0;
        }
        const std::string& front = r.body.front();
        const std::size_t n = front.copy(reinterpret_cast<char*>(room), size, r.front_at);
        r.sent += n;
        r.front_at += n;
        if (r.front_at == front.size()) {
            r.body.pop_front();
            r.front_at = 0;
        }
        if (r.body.empty() && r.body_ends) *flags |= NGHTTP2_DATA_FLAG_EOF;
        return static_cast<ssize_t>(n);
    }

    std::unique_ptr<asio::ssl::stream<tcp::socket>> socket_;
    nghttp2_session* session_ = nullptr;
    std::map<std::int32_t, Request> requests_;
    std::map<std::int32_t, std::size_t> withheld_;
    std::optional<std::uint32_t> goaway_;
    bool gone_ = false;
};

}  // namespace gb::http::testing
