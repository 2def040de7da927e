// SPDX-License-Identifier: Apache-2.0
// Headers that are set on requests to a host on behalf of a sandbox, which never sees them (contract 7.6).
// Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/message.h"
#include "net/network_request.h"

namespace gb::egress {

// In a value `${e2b.secrets.<name>}` may stand, any number of times. Other text that begins with `${e2b.` is
// refused, so that nobody takes it for something that is replaced; what else looks like a placeholder is
// plain text.
using net::HeaderRule;

inline constexpr std::size_t kMostHeaderRules = 64;
inline constexpr std::size_t kLongestHeaderValue = 8 * 1024;     // as it is written
inline constexpr std::size_t kLongestExpandedValue = 32 * 1024;  // with its secrets

// What a client may set: names that are tokens and none of the connection's or the message's own, values
// without control bytes. invalid_argument with a text that may be shown: it has names, never values.
Status check_rules(const std::vector<HeaderRule>& rules);

// The secrets that checked rules need, each once, sorted.
std::vector<std::string> secret_names(const std::vector<HeaderRule>& rules);

using SecretLookup = std::function<Result<std::string>(std::string_view name)>;

// Sets every header, in the order of the rules; what the request had of that name goes, all of it. Values of
// secrets are put in once and not looked at again. On an error nothing has changed and the request must not
// be sent: rules that would not pass check_rules(), a secret that is missing (its error is passed on without
// its text), or one whose value is no header value (line ends, control bytes). Texts of errors have names,
// never values.
Status apply(const std::vector<HeaderRule>& rules, http::Headers& headers, const SecretLookup& lookup);

}  // namespace gb::egress
