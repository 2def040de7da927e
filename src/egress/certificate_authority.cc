// SPDX-License-Identifier: Apache-2.0
#include "egress/certificate_authority.h"

#include <algorithm>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/openssl_ptr.h"
#include "http/tls_context.h"
#include "net/host_name.h"

namespace gb::egress {
namespace {

constexpr std::int64_t kDayMs = 86'400'000;
constexpr std::int64_t kAuthorityDays = 3650;
constexpr std::int64_t kLeafDays = 7;
constexpr std::size_t kLongestCommonName = 64;  // RFC 5280 A.1, ub-common-name

using Extension = std::unique_ptr<X509_EXTENSION, OpenSslFree<X509_EXTENSION_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, OpenSslFree<GENERAL_NAMES_free>>;
using Certificate = std::shared_ptr<X509>;
using Key = std::shared_ptr<EVP_PKEY>;

std::unexpected<Error> failed(std::string_view what) {
    ERR_clear_error();
    return fail(ErrorCode::internal, fmt::format("OpenSSL cannot {}", what));
}

Key make_key() {
    return Key(EVP_EC_gen("P-256"), EVP_PKEY_free);
}

// RFC 5280 4.1.2.2: positive, not predictable, at most 20 bytes.
bool set_serial(X509* certificate) {
    std::string bytes = random_bytes(16);
    bytes[0] = static_cast<char>((bytes[0] & 0x3f) | 0x40);
    BIGNUM* number = BN_bin2bn(reinterpret_cast<const unsigned char*>(bytes.data()),
                               static_cast<int>(bytes.size()), nullptr);
    const bool set =
        number != nullptr && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
    BN_free(number);
    return set;
}

bool set_name(X509_NAME* name, std::string_view text) {
    return X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(text.data()),
                                      static_cast<int>(text.size()), -1, 0) == 1;
}

bool set_times(X509* certificate, std::int64_t from_ms, std::int64_t to_ms) {
    return ASN1_TIME_set(X509_getm_notBefore(certificate), from_ms / 1000) != nullptr &&
           ASN1_TIME_set(X509_getm_notAfter(certificate), to_ms / 1000) != nullptr;
}

bool add_extension(X509* certificate, X509* issuer, int kind, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value));
    return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// Without OpenSSL's language for values: a host is a stranger's text.
bool add_dns_name(X509* certificate, std::string_view host) {
    const Names names(GENERAL_NAMES_new());
    GENERAL_NAME* name = GENERAL_NAME_new();
    ASN1_IA5STRING* text = ASN1_IA5STRING_new();
    if (!names || name == nullptr || text == nullptr ||
        ASN1_STRING_set(text, host.data(), static_cast<int>(host.size())) != 1) {
        GENERAL_NAME_free(name);
        ASN1_IA5STRING_free(text);
        return false;
    }
    GENERAL_NAME_set0_value(name, GEN_DNS, text);
    if (sk_GENERAL_NAME_push(names.get(), name) <= 0) {
        GENERAL_NAME_free(name);
        return false;
    }
    return X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) == 1;
}

Result<std::string> pem_of(X509* certificate) {
    const OpenSslBio bio(BIO_new(BIO_s_mem()));
    if (!bio || PEM_write_bio_X509(bio.get(), certificate) != 1) return failed("write a certificate");
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return std::string(data, static_cast<std::size_t>(size));
}

Result<std::shared_ptr<SSL_CTX>> make_context(X509* leaf, EVP_PKEY* key) {
    std::shared_ptr<SSL_CTX> context = http::new_tls_context(TLS_server_method());
    if (!context || SSL_CTX_use_certificate(context.get(), leaf) != 1 ||
        SSL_CTX_use_PrivateKey(context.get(), key) != 1)
        return failed("make a TLS server");
    http::choose_protocol(context.get(), http::Alpn::http1);
    return context;
}

}  // namespace

CertificateAuthority::CertificateAuthority(Certificate certificate, Key key, Clock clock)
    : certificate_(std::move(certificate)),
      key_(std::move(key)),
      clock_(clock ? std::move(clock) : Clock(now_ms)) {}

Result<CertificateAuthority> CertificateAuthority::with_leaf_key(Certificate certificate, Key key,
                                                                 Clock clock) {
    CertificateAuthority out(std::move(certificate), std::move(key), std::move(clock));
    GB_TRY_ASSIGN(out.pem_, pem_of(out.certificate_.get()));
    out.leaf_key_ = make_key();
    if (!out.leaf_key_) return failed("make a key");
    return out;
}

Result<CertificateAuthority> CertificateAuthority::make(std::string_view sandbox_id, Clock clock) {
    const std::int64_t now = clock ? clock() : now_ms();
    const Key key = make_key();
    const Certificate made(X509_new(), X509_free);
    X509* c = made.get();
    const std::string name = fmt::format("Glovebox sandbox {}", sandbox_id);
    if (name.size() > kLongestCommonName)
        return fail(ErrorCode::invalid_argument, "the sandbox's id is too long");
    if (!key || c == nullptr || X509_set_version(c, X509_VERSION_3) != 1 || !set_serial(c) ||
        !set_name(X509_get_subject_name(c), name) || X509_set_issuer_name(c, X509_get_subject_name(c)) != 1 ||
        !set_times(c, now - kDayMs, now + kAuthorityDays * kDayMs) || X509_set_pubkey(c, key.get()) != 1 ||
        !add_extension(c, c, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
        !add_extension(c, c, NID_key_usage, "critical,keyCertSign,cRLSign") ||
        !add_extension(c, c, NID_subject_key_identifier, "hash") ||
        X509_sign(c, key.get(), EVP_sha256()) <= 0)
        return failed("make a certificate authority");
    return with_leaf_key(made, key, std::move(clock));
}

Result<std::string> CertificateAuthority::subject_hash() const {
    int made = 0;
    const unsigned long hash =
        X509_NAME_hash_ex(X509_get_subject_name(certificate_.get()), nullptr, nullptr, &made);
    if (made != 1) return failed("make the hash of a name");
    return fmt::format("{:08x}", hash);
}

Status CertificateAuthority::save(const std::filesystem::path& path) const {
    Wiped both{pem_};
    {
        // Memory that OpenSSL wipes when it is freed.
        const OpenSslBio bio(BIO_new(BIO_s_secmem()));
        if (!bio ||
            PEM_write_bio_PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
            return failed("write a key");
        char* data = nullptr;
        const long size = BIO_get_mem_data(bio.get(), &data);
        both.text.append(data, static_cast<std::size_t>(size));
    }
    return write_file_atomic(path, both.text, 0600);
}

Result<CertificateAuthority> CertificateAuthority::load(const std::filesystem::path& path, Clock clock) {
    Wiped text;
    GB_TRY_ASSIGN(text.text, read_file(path));
    const OpenSslBio bio = bio_of(text.text);
    const auto no_passphrase = [](char*, int, int, void*) {
        return -1;
    };  // OpenSSL would ask at the terminal
    const Certificate certificate(
        bio ? PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr) : nullptr, X509_free);
    const Key key(certificate ? PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr) : nullptr,
                  EVP_PKEY_free);
    const bool good = certificate && key && X509_check_private_key(certificate.get(), key.get()) == 1 &&
                      X509_check_ca(certificate.get()) == 1;
    ERR_clear_error();
    if (!good)
        return fail(ErrorCode::data_loss,
                    fmt::format("{}: is no certificate authority with its key", path.string()));
    return with_leaf_key(certificate, key, std::move(clock));
}

Result<std::shared_ptr<SSL_CTX>> CertificateAuthority::leaf(std::string_view host) {
    const std::int64_t now = clock_();
    const std::string key(host);
    if (const auto found = by_host_.find(key); found != by_host_.end()) {
        if (found->second->ends_ms - now >= kDayMs) {
            leaves_.splice(leaves_.begin(), leaves_, found->second);
            return found->second->context;
        }
        leaves_.erase(found->second);
        by_host_.erase(found);
    }
    if (auto name = net::parse_host(host); !name || name->kind != net::Host::Kind::name || name->name != host)
        return fail(ErrorCode::invalid_argument, "not a DNS name in lower case");
    const std::int64_t ends = now + kLeafDays * kDayMs;
    const Certificate made(X509_new(), X509_free);
    X509* c = made.get();
    X509* issuer = certificate_.get();
    // The name that counts is the alternative one; a long one does not fit here.
    const std::string_view name =
        host.size() <= kLongestCommonName ? host : std::string_view("Glovebox sandbox");
    if (c == nullptr || X509_set_version(c, X509_VERSION_3) != 1 || !set_serial(c) ||
        !set_name(X509_get_subject_name(c), name) ||
        X509_set_issuer_name(c, X509_get_subject_name(issuer)) != 1 || !set_times(c, now - kDayMs, ends) ||
        X509_set_pubkey(c, leaf_key_.get()) != 1 ||
        !add_extension(c, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
        !add_extension(c, issuer, NID_key_usage, "critical,digitalSignature") ||
        !add_extension(c, issuer, NID_ext_key_usage, "serverAuth") ||
        !add_extension(c, issuer, NID_subject_key_identifier, "hash") ||
        !add_extension(c, issuer, NID_authority_key_identifier, "keyid:always") || !add_dns_name(c, host) ||
        X509_sign(c, key_.get(), EVP_sha256()) <= 0)
        return failed("make a certificate");
    GB_TRY_ASSIGN(std::shared_ptr<SSL_CTX> context, make_context(c, leaf_key_.get()));
    leaves_.push_front({key, ends, context});
    by_host_[key] = leaves_.begin();
    if (leaves_.size() > kMostLeaves) {
        by_host_.erase(leaves_.back().host);
        leaves_.pop_back();
    }
    return context;
}

}  // namespace gb::egress
