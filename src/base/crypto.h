// SPDX-License-Identifier: Apache-2.0
// Hashes, MACs and encodings. Wraps OpenSSL; bytes in, bytes out.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace gb {

std::string sha256(std::string_view data);  // 32 bytes
std::string sha256_hex(std::string_view data);
// The same of data that comes in pieces.
class Sha256 {
  public:
    Sha256();
    ~Sha256();
    Sha256(Sha256&&) noexcept;
    Sha256& operator=(Sha256&&) noexcept;
    void update(std::string_view piece);
    std::string finish();  // 32 bytes; then it begins anew

  private:
    struct State;
    std::unique_ptr<State> state_;
};
std::string hmac_sha256(std::string_view key, std::string_view data);  // 32 bytes

// Takes the same time wherever two strings of equal length differ.
bool constant_time_equal(std::string_view a, std::string_view b);

std::string base64_encode(std::string_view data);                           // RFC 4648 section 4, padded
std::string base64url_encode(std::string_view data);                        // section 5, not padded
std::optional<std::string> base64_decode(std::string_view text);            // section 4, padding optional
std::optional<std::string> base64url_decode(std::string_view text);

}  // namespace gb
