// SPDX-License-Identifier: Apache-2.0
// The certificate authority of one sandbox: what it signs is believed by that sandbox's guest and by nobody
// else. Its key stays on the host. EC P-256; RFC 5280.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"

using SSL_CTX = struct ssl_ctx_st;  // OpenSSL's own declarations
using X509 = struct x509_st;
using EVP_PKEY = struct evp_pkey_st;

namespace gb::egress {

// Not thread-safe. Errors have no part of a key.
class CertificateAuthority {
  public:
    using Clock = std::function<std::int64_t()>;  // milliseconds since 1970; empty: the wall clock

    // A new one, named "Glovebox sandbox <id>", valid from a day ago for ten years, so that a sandbox that
    // was paused for long finds it valid; it may sign certificates of servers only, not of further
    // authorities.
    static Result<CertificateAuthority> make(std::string_view sandbox_id, Clock clock = {});
    // Certificate and key in one PEM file, 0600, replaced as a whole. data_loss when it is not such a file.
    Status save(const std::filesystem::path& path) const;
    static Result<CertificateAuthority> load(const std::filesystem::path& path, Clock clock = {});

    // The certificate for the guest's trust store, without the key.
    [[nodiscard]] const std::string& pem() const { return pem_; }
    // Under which OpenSSL looks for it in a folder of certificates: `openssl x509 -hash`, 8 hexadecimal
    // digits in lower case. internal if OpenSSL cannot make it.
    [[nodiscard]] Result<std::string> subject_hash() const;

    // For the server's side of a TLS connection that is meant for `host`, a lower-case DNS name: a
    // certificate for exactly that name, valid from a day ago (a guest's clock may be behind) for 7 days;
    // TLS 1.2 and newer, ALPN http/1.1 alone. The last kMostLeaves are kept, and made anew when less than a
    // day is left. invalid_argument for what is no DNS name.
    Result<std::shared_ptr<SSL_CTX>> leaf(std::string_view host);

    static constexpr std::size_t kMostLeaves = 256;

  private:
    struct Leaf {
        std::string host;
        std::int64_t ends_ms;
        std::shared_ptr<SSL_CTX> context;
    };
    CertificateAuthority(std::shared_ptr<X509> certificate, std::shared_ptr<EVP_PKEY> key, Clock clock);
    static Result<CertificateAuthority> with_leaf_key(std::shared_ptr<X509> certificate,
                                                      std::shared_ptr<EVP_PKEY> key, Clock clock);

    std::shared_ptr<X509> certificate_;
    std::shared_ptr<EVP_PKEY> key_, leaf_key_;  // one key for all leaves: it never leaves this process
    std::string pem_;
    Clock clock_;
    std::list<Leaf> leaves_;  // the last used first
    std::unordered_map<std::string, std::list<Leaf>::iterator> by_host_;
};

}  // namespace gb::egress
