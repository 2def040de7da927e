// SPDX-License-Identifier: Apache-2.0
// Whether an address is one of the public internet. Pure. Sources: the IANA special-purpose address
// registries for IPv4 and IPv6 (RFC 6890), RFC 4291 for addresses that hold an IPv4 one, RFC 6052 and RFC
// 3056 for translated ones.
#pragma once

#include <boost/asio/ip/address.hpp>

namespace gb {

// False for what is private, local, shared, reserved or for groups, however it is written: an IPv6 address
// that stands for an IPv4 one is judged as that one.
bool is_public_address(const boost::asio::ip::address& address);

}  // namespace gb
