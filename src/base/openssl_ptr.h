// SPDX-License-Identifier: Apache-2.0
// Ownership of OpenSSL's objects. For source files: whoever includes it links OpenSSL.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <openssl/bio.h>
#include <openssl/crypto.h>

namespace gb {

// std::unique_ptr<X509, OpenSslFree<X509_free>>
template <auto free>
struct OpenSslFree {
    template <class T>
    void operator()(T* object) const {
        free(object);
    }
};
using OpenSslBio = std::unique_ptr<BIO, OpenSslFree<BIO_free>>;

// Reads from the text, which must last as long; null when there is no memory.
inline OpenSslBio bio_of(std::string_view text) {
    return OpenSslBio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Text of which nothing stays in memory, of a key for example.
struct Wiped {
    std::string text;
    ~Wiped() { OPENSSL_cleanse(text.data(), text.size()); }
};

}  // namespace gb
