// SPDX-License-Identifier: Apache-2.0
// The identity of a root file system: a hash of everything it is made from. Two definitions with one hash
// give images that are interchangeable, whatever their memory size or start command.
#pragma once

#include <string>

#include "base/result.h"
#include "image/definition.h"

namespace gb::image {

// 16 lower-case hexadecimal digits over: the format version, the packages, the disk size, the way the file
// system is made, and each layer's setup script and files (names, contents, executable bits, link targets).
// Independent of where the definition lies, of owners and times, and of the order in which a directory lists
// its entries. The archive's own state is not part of it: security updates come with a rebuild asked for by
// hand.
Result<std::string> definition_hash(const TemplateDefinition& definition);

}  // namespace gb::image
