// SPDX-License-Identifier: Apache-2.0
// The server's side of TLS: a certificate chain and its key from two PEM files, which may be replaced while
// the server runs. TLS 1.2 and newer; ALPN chooses h2, then http/1.1 (RFC 7301, RFC 9113 9.2).
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/result.h"

using SSL_CTX = struct ssl_ctx_st;  // OpenSSL's own declaration

namespace gb::http {

struct TlsFiles {
    std::filesystem::path certificate_chain;  // the server's certificate first, then those that signed it
    std::filesystem::path private_key;        // without a passphrase
};

// Not thread-safe.
class ServerTls {
  public:
    // Errors name the file and what to do about it, and nothing of its content.
    static Result<std::shared_ptr<ServerTls>> load(TlsFiles files);

    // Reads both files again. On an error the old pair stays in force; connections that are open keep theirs
    // anyway.
    Status reload();
    // Whether a file is another one than at the last load or reload, good or bad. Looks at inode, size and
    // time only.
    [[nodiscard]] bool changed() const;
    // For new connections. Shared by OpenSSL's own reference counts.
    [[nodiscard]] SSL_CTX* context() const { return context_.get(); }
    [[nodiscard]] const TlsFiles& files() const { return files_; }

  private:
    struct Stamp {
        std::uint64_t device = 0, inode = 0, size = 0;
        std::int64_t changed_s = 0, changed_ns = 0;
        bool operator==(const Stamp&) const = default;
    };
    using Stamps = std::array<Stamp, 2>;
    explicit ServerTls(TlsFiles files) : files_(std::move(files)) {}
    [[nodiscard]] static Stamp stamp(const std::filesystem::path& path);
    [[nodiscard]] Stamps stamps() const;

    TlsFiles files_;
    Stamps seen_{};
    std::shared_ptr<SSL_CTX> context_;
};

}  // namespace gb::http
