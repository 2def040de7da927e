// SPDX-License-Identifier: Apache-2.0
// Bytes of a stranger as a client hello: the same in any pieces, and what is found stands in the bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "egress/client_hello.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using gb::egress::ClientHello;
    if (size < 1) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::size_t step = data[0] + std::size_t{1};
    const ClientHello whole = gb::egress::read_client_hello(bytes);
    gb::egress::ClientHelloReader reader;
    for (std::size_t at = 0; at < bytes.size(); at += step) reader.feed(bytes.substr(at, step));
    const ClientHello& pieces = reader.feed("");
    if (pieces.state != whole.state) std::abort();
    if (whole.state != ClientHello::State::hello) return 0;
    if (pieces.sni != whole.sni || pieces.alpn != whole.alpn || pieces.ech != whole.ech) std::abort();
    if (whole.sni && whole.sni->empty()) std::abort();
    // A name may be cut by the header of a record; one that is short enough not to be in two places is not.
    if (bytes.size() > 0 && bytes.front() != 0x16) std::abort();
    return 0;
}
