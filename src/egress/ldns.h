// SPDX-License-Identifier: Apache-2.0
// ldns, whose headers would define bool, true and false as macros if <stdbool.h> did not come first.
#pragma once

// clang-format off
#include <stdbool.h>
#include <ldns/ldns.h>
// clang-format on
