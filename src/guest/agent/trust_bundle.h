// SPDX-License-Identifier: Apache-2.0
// The text of a file of trusted certificates, with and without the authority that ends this sandbox's TLS on
// the host. Pure. The file belongs to the guest, where root may have written anything into it: what is not
// ours stays.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gb::agent {

// One certificate as PEM, ended by a newline, and OpenSSL's hash of its subject (X509_subject_name_hash, 8
// lower-case hexadecimal digits). Both empty: no authority.
struct Authority {
    std::string pem;
    std::string hash;
    friend bool operator==(const Authority&, const Authority&) = default;
};

// `ca_bundle` "" is no authority, whatever the hash. invalid_argument for anything but exactly one
// certificate: what is written into the guest's files must be what is found there again.
Result<Authority> make_authority(std::string_view ca_bundle, std::string_view ca_hash);

// How many bytes of `text` are one PEM certificate (RFC 7468, strict form) from its first byte on, with the
// line ending after it; 0 if it does not begin with one. What is inside is not looked at.
std::size_t certificate_length(std::string_view text);

// Without the block that with_authority() made, and without any certificate of `known`: the distribution's
// update-ca-certificates copies it without our lines around it.
std::string without_authority(std::string_view bundle, const std::vector<std::string>& known);

// The same with `pem` as a block at its end. A last line without an ending gets one, and keeps it.
std::string with_authority(std::string_view bundle, std::string_view pem,
                           const std::vector<std::string>& known);

}  // namespace gb::agent
