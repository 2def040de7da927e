// The Python code that the server runs in a kernel unseen. Pure builders. Values never become code: they
// travel as JSON text inside one string literal, and the kernel's own module `glovebox_kernel` reads them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gb::interpreter {

using EnvMap = std::map<std::string, std::string>;

enum class Reseed { no, yes };

// Sets the sandbox's own environment, taking back what an earlier call set and this one does not; on
// Reseed::yes gives the random number generators fresh seeds.
std::string enter_generation_code(Reseed reseed, const EnvMap& env);

std::string set_call_env_code(const EnvMap& env);  // until reset_call_env_code
std::string reset_call_env_code();
std::string preload_code(const std::vector<std::string>& modules);

// `text` (UTF-8) as a Python string literal with its quotes.
std::string python_literal(std::string_view text);

}  // namespace gb::interpreter
