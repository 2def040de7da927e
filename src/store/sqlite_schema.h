// SPDX-License-Identifier: Apache-2.0
// The tables, and how a file of an older version of the program becomes one of this version.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include "base/result.h"

namespace gb {

// failed_precondition when a newer program has made the file. Throws what SQLiteCpp throws.
Status migrate(SQLite::Database& db);

}  // namespace gb
