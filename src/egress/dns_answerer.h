// SPDX-License-Identifier: Apache-2.0
// What a guest is answered about a name that its policy allows.
#pragma once

#include <memory>
#include <string>

#include "egress/pins.h"
#include "egress/resolver.h"

namespace gb::egress {

// Asks the servers (addresses through the cache), or does not, as rule_for() says. Addresses that `keep`
// closes are left out; if a name has no others, the reply is NXDOMAIN with `filtered`. What the guest is told
// of is put into `pins`, if there are any, under the name that it asked for. A failure is a server failure
// with `failure`. `keep` is asked after the answer has come, and must judge by the policy of that moment.
awaitable<DnsReply> answer_from(std::shared_ptr<Resolver> resolver, std::string owner, DnsQuery query,
                                AddressPredicate keep, std::shared_ptr<Pins> pins);

}  // namespace gb::egress
