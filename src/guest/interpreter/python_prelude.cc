#include "guest/interpreter/python_prelude.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

namespace gb::interpreter {
namespace {

namespace json = boost::json;

// An expression, not statements: nothing appears among the user's names.
std::string call(std::string_view function, const json::value& argument) {
    return fmt::format("__import__('glovebox_kernel').{}({})", function,
                       python_literal(json::serialize(argument)));
}

json::object env_object(const EnvMap& env) {
    json::object object;
    for (const auto& [name, value] : env) object[name] = value;
    return object;
}

}  // namespace

std::string python_literal(std::string_view text) {
    std::string literal = "'";
    for (char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\'' || c == '\\') {
            literal += '\\';
            literal += c;
        } else if (byte < 0x20 || byte == 0x7F) {
            literal += fmt::format("\\x{:02x}", byte);
        } else {
            literal += c;
        }
    }
    return literal + "'";
}

std::string enter_generation_code(Reseed reseed, const EnvMap& env) {
    json::object argument;
    argument["reseed"] = reseed == Reseed::yes;
    argument["env"] = env_object(env);
    return call("enter_generation", argument);
}

std::string set_call_env_code(const EnvMap& env) {
    return call("set_call_env", env_object(env));
}

std::string reset_call_env_code() {
    return call("set_call_env", json::object());
}

std::string preload_code(const std::vector<std::string>& modules) {
    json::array names;
    for (const std::string& name : modules) names.emplace_back(name);
    return call("preload", names);
}

}  // namespace gb::interpreter
