// SPDX-License-Identifier: Apache-2.0
// What a TLS client asks for before anything is encrypted: server name and protocols (RFC 8446 4.1.2, RFC
// 6066 3, RFC 7301). OpenSSL reads the bytes; nothing is answered. Pure.
//
// The name is judged and resolved by others; it is a stranger's bytes, in which anything may be.
//
// Encrypted ClientHello (extension 0xfe0d): `ech` says that one is there. Browsers send one that means
// nothing
// ("GREASE ECH") to every server, and from outside it looks the same. The name here is always the outer one:
// it is what is judged, resolved and connected to, and a server that is not the one of an inner name cannot
// open it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gb::egress {

struct ClientHello {
    enum class State {
        needs_more,  // good so far
        not_tls,     // another protocol
        malformed,   // TLS without a readable hello, two server names, or more than kLargestHello bytes
        hello,       // the fields below are set
    };
    State state = State::needs_more;
    std::optional<std::string> sni;  // as it stands there, not empty
    std::vector<std::string> alpn;
    bool ech = false;
};

inline constexpr std::size_t kLargestHello = std::size_t{64} * 1024;

// For bytes that come in pieces. What it was fed stays the caller's to pass on.
class ClientHelloReader {
  public:
    ClientHelloReader();
    ~ClientHelloReader();
    ClientHelloReader(const ClientHelloReader&) = delete;
    ClientHelloReader& operator=(const ClientHelloReader&) = delete;

    // The next bytes of the connection. Once the state is not needs_more it stays.
    const ClientHello& feed(std::string_view bytes);

  private:
    struct Ssl;
    std::unique_ptr<Ssl> ssl_;
    std::size_t fed_ = 0;
    ClientHello found_;
};

// All bytes so far at once.
ClientHello read_client_hello(std::string_view bytes);

}  // namespace gb::egress
