// SPDX-License-Identifier: Apache-2.0
// Lists of entity tags: a tag is found in them if and only if it stands there.
#include <cstdint>
#include <cstdlib>

#include "guest/agent/conditional.h"

namespace {

using namespace gb::agent;

Condition check(const char* name, const std::string& list) {
    return check_conditions({{name, list}}, {"\"our,tag\"", 1'000'000});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    for (const char* ours : {"\"our,tag\"", " ,\t\"x\", \"our,tag\",", "W/\"y\" W/\"our,tag\"", "*,"})
        if (check("If-None-Match", ours + text) != Condition::not_modified) std::abort();
    if (check("If-Match", "\"our,tag\"" + text) != Condition::met) std::abort();

    const bool found = check("If-None-Match", text) == Condition::not_modified;
    if (found && !text.contains("\"our,tag\"") && !text.contains('*')) std::abort();
    // What is found strongly is found weakly.
    if (check("If-Match", text) == Condition::met && !found) std::abort();
    if (!found && check("If-Match", text) != Condition::failed) std::abort();

    const FileVersion version{text, 1'000'000};
    if (range_applies({{"If-Range", "W/" + text}}, version)) std::abort();
    return 0;
}
