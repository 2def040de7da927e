// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace gb {

// What stands between spaces, tabs and line ends, as in files of /proc and of control groups. Parts of `text`.
inline std::vector<std::string_view> words(std::string_view text) {
    constexpr std::string_view kBetween = " \t\n";
    std::vector<std::string_view> out;
    for (std::size_t begin; (begin = text.find_first_not_of(kBetween)) != std::string_view::npos;) {
        const std::size_t end = std::min(text.find_first_of(kBetween, begin), text.size());
        out.push_back(text.substr(begin, end - begin));
        text.remove_prefix(end);
    }
    return out;
}

}  // namespace gb
