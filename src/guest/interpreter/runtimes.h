// SPDX-License-Identifier: Apache-2.0
// The programs that run each language, as far as this sandbox has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gb::interpreter {

// Paths of executables; empty where there is none.
struct Runtimes {
    std::string python;  // with ipykernel
    std::string node;    // at least version 22, for its removal of types
    std::string node_modules = "/usr/local/lib/node_modules";  // holds acorn
    std::string node_entropy;                                  // our module for it (node_entropy.cc)
    std::string bash;
    std::string r;     // with IRkernel
    std::string java;  // beside it `javac`
    std::string javac;
};

// Looks along PATH. Python is the distribution's: one that somebody installed beside it has no ipykernel.
Runtimes find_runtimes();

// Languages that can be asked for, sorted, TypeScript among them.
std::vector<std::string> languages(const Runtimes& runtimes);

// unimplemented, with the languages there are, when no kernel runs `language` (normalised).
Status require_kernel_for(std::string_view language, const Runtimes& runtimes);

}  // namespace gb::interpreter
