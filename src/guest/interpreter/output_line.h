// SPDX-License-Identifier: Apache-2.0
// The lines of an answer to POST /execute: one JSON object each (contract 4.3). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gb::interpreter {

enum class Stream { out, err };
enum class ResultKind { main_result, displayed };

// Every function returns a whole line with its line feed. Bytes that are not UTF-8 become U+FFFD.
std::string number_of_executions_line(std::int64_t count);
std::string stream_line(Stream stream, std::string_view text, std::string_view timestamp);
std::string error_line(std::string_view name, std::string_view value, std::string_view traceback);
std::string keepalive_line();
std::string end_of_execution_line();

// A Jupyter MIME bundle, a valid JSON object, as a `result`. Values are passed on as they are written; types
// without a field of their own go to `extra`.
std::string result_line(ResultKind kind, std::string_view bundle);

// Takes one pair of quotes off a repr such as 'text'.
std::string_view without_quotes(std::string_view repr);

}  // namespace gb::interpreter
