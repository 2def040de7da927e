// SPDX-License-Identifier: Apache-2.0
// Names of templates as clients write them.
#include <cstdlib>
#include <string_view>

#include "control/template_name.h"

namespace {

void expect(bool held) {
    if (!held) std::abort();
}

bool plain(std::string_view text, std::string_view also) {
    for (char c : text)
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || also.contains(c))) return false;
    return text.size() <= 128;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto name = gb::parse_template_name(text);
    if (!name) return 0;
    expect(!name->name.empty() && plain(name->name, "-_") && plain(name->space, "-_") && plain(name->tag, "-_."));
    // What it reads, written again, is read as the same.
    std::string again = name->space.empty() ? "" : name->space + "/";
    again += name->name;
    if (!name->tag.empty()) again += ":" + name->tag;
    const auto second = gb::parse_template_name(again);
    expect(second && second->space == name->space && second->name == name->name && second->tag == name->tag);
    const auto fresh = gb::parse_new_template_name(text, "team");
    if (!fresh) return 0;
    expect(fresh->space == "team" && !fresh->tag.empty() && (name->space.empty() || name->space == "team"));
    return 0;
}
