// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/hidden_call.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

namespace gb::interpreter {
namespace {

namespace json = boost::json;

json::object env_object(const EnvMap& env) {
    json::object object;
    for (const auto& [name, value] : env) object[name] = value;
    return object;
}

}  // namespace

std::string quoted_literal(std::string_view text) {
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

HiddenCall enter_generation(Reseed reseed, const EnvMap& env) {
    return {"enter_generation", json::object{{"reseed", reseed == Reseed::yes}, {"env", env_object(env)}}};
}

HiddenCall set_call_env(const EnvMap& env) {
    return {"set_call_env", env_object(env)};
}

std::string python_code(const HiddenCall& call) {
    return fmt::format("__import__('glovebox_kernel').{}({})", call.function,
                       quoted_literal(json::serialize(call.argument)));
}

std::string r_code(const HiddenCall& call) {
    return fmt::format("getOption('glovebox')${}({})", call.function,
                       quoted_literal(json::serialize(call.argument)));
}

}  // namespace gb::interpreter
