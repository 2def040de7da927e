// SPDX-License-Identifier: Apache-2.0
// What QEMU's monitor says, as values. Pure: bytes in, messages out.
//
// The other side is not trusted: a guest that has taken over its VMM may send anything. Lines are bounded,
// nesting is bounded, and what does not fit the protocol is an error that ends the conversation. Source: QEMU
// docs/interop/qmp-spec.rst.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "base/result.h"

namespace gb::engine {

struct QmpGreeting {};
struct QmpReply {
    std::uint64_t id = 0;
    boost::json::value result;         // of "return"
    std::optional<std::string> error;  // its description, cut to 500 bytes
};
struct QmpEvent {
    std::string name;
    boost::json::object data;
};
using QmpMessage = std::variant<QmpGreeting, QmpReply, QmpEvent>;

inline constexpr std::size_t kQmpMaxLine = 64 * 1024;

Result<QmpMessage> parse_qmp_line(std::string_view line);

// Cuts a byte stream into lines.
class QmpLines {
  public:
    // too_large when a line is longer than kQmpMaxLine; everything after that is refused too.
    Status feed(std::string_view bytes);
    std::optional<std::string> next();  // without its end of line; empty lines are skipped

  private:
    std::string buffer_;
    std::size_t start_ = 0;  // of the first line that was not taken
    std::size_t searched_ = 0;
    bool broken_ = false;
};

// One request line, with its end of line.
std::string qmp_request(std::string_view command, const boost::json::object& arguments, std::uint64_t id);

}  // namespace gb::engine
