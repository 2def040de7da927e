// SPDX-License-Identifier: Apache-2.0
// QEMU's migration stream, as far as it begins differently when a machine is captured and when the state of its devices is
// saved. Format: QEMU, docs/devel/migration. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gb::engine {

// The stream without the section that names machine type and capabilities. What is saved of devices alone has none, and
// whoever loads a state expects it always or never; a QEMU between 8.2 and 9.2 that is told to leave it out of an ordinary
// migration ends with an assertion, so it is taken out here. A stream without one is returned as it is. data_loss: not a
// stream, or one with a part in that section that is not known.
Result<std::string> without_configuration(std::string_view stream);

}  // namespace gb::engine
