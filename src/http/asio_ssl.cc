// SPDX-License-Identifier: Apache-2.0
// The code of Asio's TLS that is no template. The server has TLS of its own (tls_stream.h); this is for tests, whose
// clients must not share it.
#include <boost/asio/ssl/impl/src.hpp>
