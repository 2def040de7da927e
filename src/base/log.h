// SPDX-License-Identifier: Apache-2.0
// Structured log: one JSON object a line on standard error. Never give it a secret: keys and values are written
// as they are.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace gb::log {

enum class Level { debug, info, warn, error };

struct Field {
    std::string_view key;
    std::string value;
    bool raw = false;  // a number or true/false: written without quotes

    Field(std::string_view k, std::string_view v) : key(k), value(v) {}
    Field(std::string_view k, const std::string& v) : key(k), value(v) {}
    Field(std::string_view k, const char* v) : key(k), value(v) {}
    Field(std::string_view k, bool v) : key(k), value(v ? "true" : "false"), raw(true) {}
    Field(std::string_view k, int v) : key(k), value(std::to_string(v)), raw(true) {}
    Field(std::string_view k, long v) : key(k), value(std::to_string(v)), raw(true) {}
    Field(std::string_view k, long long v) : key(k), value(std::to_string(v)), raw(true) {}
    Field(std::string_view k, unsigned v) : key(k), value(std::to_string(v)), raw(true) {}
    Field(std::string_view k, unsigned long v) : key(k), value(std::to_string(v)), raw(true) {}
};

void set_level(Level least);
void set_output(int fd);  // standard error until set; the descriptor stays the caller's
void write(Level level, std::string_view message, std::initializer_list<Field> fields = {});

inline void debug(std::string_view m, std::initializer_list<Field> f = {}) { write(Level::debug, m, f); }
inline void info(std::string_view m, std::initializer_list<Field> f = {}) { write(Level::info, m, f); }
inline void warn(std::string_view m, std::initializer_list<Field> f = {}) { write(Level::warn, m, f); }
inline void error(std::string_view m, std::initializer_list<Field> f = {}) { write(Level::error, m, f); }

// `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
std::string json_quote(std::string_view text);

}  // namespace gb::log
