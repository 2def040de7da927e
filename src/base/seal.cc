// SPDX-License-Identifier: Apache-2.0
#include "base/seal.h"

#include <array>
#include <memory>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/crypto.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/openssl_ptr.h"

namespace gb {
namespace {

constexpr std::size_t kKeyBytes = 32, kNonceBytes = 12, kTagBytes = 16;
constexpr char kVersion = 1;  // first byte of what is sealed: version, nonce, ciphertext, tag
constexpr std::size_t kMostBytes = std::size_t{1} << 20;

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, OpenSslFree<EVP_CIPHER_CTX_free>>;

const unsigned char* bytes(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes(std::string& text) {
    return reinterpret_cast<unsigned char*>(text.data());
}

Result<std::string> parse_key(std::string_view text, const std::string& name) {
    auto key = base64url_decode(text.substr(0, text.find_last_not_of("\r\n") + 1));
    if (!key || key->size() != kKeyBytes)
        return fail(ErrorCode::failed_precondition,
                    fmt::format("{} does not hold a key: put back the one that was there, or remove the file "
                                "and give all secrets again",
                                name));
    return *std::move(key);
}

Result<std::string> read_or_make_key(const std::filesystem::path& file) {
    auto text = read_file(file);
    if (text) return parse_key(*text, file.string());
    if (text.error().code != ErrorCode::not_found) return std::unexpected(text.error());
    std::string key = random_bytes(kKeyBytes);
    GB_TRY(write_file_atomic(file, base64url_encode(key) + "\n", 0600));
    return key;
}

}  // namespace

Sealer Sealer::open(const std::filesystem::path& file) {
    Sealer out;
    out.name_ = "the key in " + file.string();
    out.key_ = read_or_make_key(file);
    return out;
}

Sealer::Sealer(std::string key) : key_(std::move(key)) {
    if (key_->size() != kKeyBytes) key_ = fail(ErrorCode::invalid_argument, "a key has 32 bytes");
}

Status Sealer::usable() const {
    if (!key_) return std::unexpected(key_.error());
    return {};
}

Result<std::string> Sealer::seal(std::string_view text, std::string_view belongs_to) const {
    GB_TRY(usable());
    if (text.size() > kMostBytes || belongs_to.size() > kMostBytes)
        return fail(ErrorCode::too_large, "it is too long to be sealed");
    const std::string nonce = random_bytes(kNonceBytes);
    std::string out = kVersion + nonce;
    out.resize(out.size() + text.size() + kTagBytes);
    unsigned char* at = bytes(out) + 1 + kNonceBytes;
    const Cipher cipher(EVP_CIPHER_CTX_new());
    int length = 0;
    const bool done =
        cipher &&
        EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, bytes(*key_), bytes(nonce)) == 1 &&
        EVP_EncryptUpdate(cipher.get(), nullptr, &length, bytes(belongs_to),
                          static_cast<int>(belongs_to.size())) == 1 &&
        EVP_EncryptUpdate(cipher.get(), at, &length, bytes(text), static_cast<int>(text.size())) == 1 &&
        EVP_EncryptFinal_ex(cipher.get(), at + length, &length) == 1 &&
        EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, static_cast<int>(kTagBytes),
                            at + text.size()) == 1;
    if (!done) return fail(ErrorCode::internal, "sealing failed");
    return base64url_encode(out);
}

Result<std::string> Sealer::unseal(std::string_view sealed, std::string_view belongs_to) const {
    GB_TRY(usable());
    const auto refused = [&] {
        return fail(
            ErrorCode::failed_precondition,
            fmt::format("it cannot be read: {} is not the one that it was sealed with, or it was changed",
                        name_));
    };
    auto whole = base64url_decode(sealed);
    if (!whole || whole->size() < 1 + kNonceBytes + kTagBytes || whole->front() != kVersion ||
        whole->size() > 2 * kMostBytes || belongs_to.size() > kMostBytes)
        return refused();
    const std::string_view nonce = std::string_view(*whole).substr(1, kNonceBytes);
    const std::size_t size = whole->size() - 1 - kNonceBytes - kTagBytes;
    const std::string_view text = std::string_view(*whole).substr(1 + kNonceBytes, size);
    std::string tag = whole->substr(1 + kNonceBytes + size);
    std::string out(size, '\0');
    std::array<unsigned char, kTagBytes> rest{};
    const Cipher cipher(EVP_CIPHER_CTX_new());
    int length = 0;
    const bool done =
        cipher &&
        EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, bytes(*key_), bytes(nonce)) == 1 &&
        EVP_DecryptUpdate(cipher.get(), nullptr, &length, bytes(belongs_to),
                          static_cast<int>(belongs_to.size())) == 1 &&
        EVP_DecryptUpdate(cipher.get(), bytes(out), &length, bytes(text), static_cast<int>(size)) == 1 &&
        EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, static_cast<int>(kTagBytes), tag.data()) ==
            1 &&
        EVP_DecryptFinal_ex(cipher.get(), rest.data(), &length) == 1;
    if (!done) return refused();
    return out;
}

}  // namespace gb
