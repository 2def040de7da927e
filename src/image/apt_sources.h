// SPDX-License-Identifier: Apache-2.0
// Finds the mirror of the Debian archive that the host itself uses, so that builds stay inside the same
// network rules. Third-party sources are never used. Formats: sources.list(5), one-line and deb822.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gb::image {

inline constexpr std::string_view kSuite = "bookworm";  // the Debian that templates and their kernel are made of

struct AptSource {
    std::vector<std::string> uris;
    std::vector<std::string> suites;
    std::vector<std::string> components;
    std::string signed_by;
};

// Lines or stanzas that are comments, disabled, source packages or malformed are left out.
std::vector<AptSource> parse_one_line_sources(std::string_view text);  // *.list
std::vector<AptSource> parse_deb822_sources(std::string_view text);    // *.sources

struct DebianMirrors {
    std::string archive = "http://deb.debian.org/debian";
    std::string security = "http://deb.debian.org/debian-security";
};

// The first source that is certainly Debian's own decides; Debian's default servers where there is none.
DebianMirrors choose_debian_mirrors(const std::vector<AptSource>& sources);

// Reads sources.list and sources.list.d in `etc_apt`; understands mirror+file: lists. Unreadable files are
// left out.
DebianMirrors detect_debian_mirrors(const std::filesystem::path& etc_apt = "/etc/apt");

// sources.list(5) lines for one suite with its updates and security fixes, accepted only with Debian's own
// keys.
std::string debian_sources_list(const DebianMirrors& mirrors, std::string_view suite);

// Settings of the host's apt that decide whether its mirror can be reached: proxies and tolerated clock
// errors. Lines of apt.conf(5), e.g. `Acquire::http::Proxy "http://proxy:3142";`.
std::vector<std::string> host_apt_options();

}  // namespace gb::image
