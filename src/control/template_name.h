// SPDX-License-Identifier: Apache-2.0
// Names of templates as clients write them: [namespace/]name[:tag]. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gb {

inline constexpr std::string_view kDefaultTag = "default";

struct TemplateName {
    std::string space;  // a team's slug; empty: none was said
    std::string name;   // or a template's id
    std::string tag;    // empty: none was said
};

// Spaces around it do not count, nor does case. invalid_argument when it is not of the form.
Result<TemplateName> parse_template_name(std::string_view text);

// For a name that is to be given by the team of this slug: no other namespace than its own. invalid_argument.
Result<TemplateName> parse_new_template_name(std::string_view text, std::string_view slug);

Status check_tag(std::string_view tag);  // small letters, digits, '-', '_', '.'; not a UUID; at most 128

}  // namespace gb
