// SPDX-License-Identifier: Apache-2.0
// What the server asks of a kernel unseen: a function of the kernel's own start-up files, and its argument as
// JSON. Pure. Kernels that speak the Jupyter protocol get it as code that is run silently; values never
// become code: they travel as JSON text inside one string literal.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

namespace gb::interpreter {

using EnvMap = std::map<std::string, std::string>;

struct HiddenCall {
    std::string function;
    boost::json::value argument;
};

enum class Reseed { no, yes };

// Sets the sandbox's own environment, taking back what an earlier call set and this one does not; on
// Reseed::yes gives the random number generators fresh seeds.
HiddenCall enter_generation(Reseed reseed, const EnvMap& env);
HiddenCall set_call_env(const EnvMap& env);  // for the next cell; an empty map takes it back

// The call as an expression: nothing appears among the user's names.
std::string python_code(const HiddenCall& call);
std::string r_code(const HiddenCall& call);

// `text` (UTF-8) as a literal with its quotes, for Python or R.
std::string quoted_literal(std::string_view text);

}  // namespace gb::interpreter
