// SPDX-License-Identifier: Apache-2.0
// Text that is kept on the disk and that only this server can read again: AES-256-GCM (NIST SP 800-38D) under
// a key of this installation. What is sealed is bound to what it belongs to, so that nobody who can write to
// the store moves it to another place.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gb {

// Immutable: any thread may use it.
class Sealer {
  public:
    // The key in `file`, which is made once, readable by root alone. A file that cannot be made or read, or
    // that holds no key, is an error of every later call and not of this one: the rest of a server works
    // without it. One process at a time may make the file.
    static Sealer open(const std::filesystem::path& file);
    explicit Sealer(std::string key);  // 32 bytes

    // `belongs_to` must be the same for unseal(). The result is text: base64url.
    [[nodiscard]] Result<std::string> seal(std::string_view text, std::string_view belongs_to) const;
    // failed_precondition: another key, another owner, or it was changed. No error repeats any of the text.
    [[nodiscard]] Result<std::string> unseal(std::string_view sealed, std::string_view belongs_to) const;

    // Success, or why nothing can be sealed or read.
    [[nodiscard]] Status usable() const;

  private:
    Sealer() = default;
    Result<std::string> key_ = fail(ErrorCode::internal, "no key");
    std::string name_ = "the key";  // what errors call it
};

}  // namespace gb
