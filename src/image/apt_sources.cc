// SPDX-License-Identifier: Apache-2.0
#include "image/apt_sources.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "base/subprocess.h"

namespace gb::image {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg";

std::vector<std::string> words(std::string_view text) {
    std::vector<std::string> out;
    std::string word;
    for (char c : text) {
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            if (!word.empty()) out.push_back(std::move(word));
            word.clear();
        } else {
            word.push_back(c);
        }
    }
    if (!word.empty()) out.push_back(std::move(word));
    return out;
}

bool contains(const auto& range, std::string_view value) {
    return std::ranges::find(range, value) != std::ranges::end(range);
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

template <class Fn>
void for_each_line(std::string_view text, Fn fn) {
    while (!text.empty()) {
        std::size_t end = text.find('\n');
        fn(text.substr(0, end));
        if (end == std::string_view::npos) return;
        text.remove_prefix(end + 1);
    }
}

// One stanza of a deb822 file, folded fields joined by spaces.
struct Stanza {
    std::string types, uris, suites, components, signed_by, enabled;

    std::string* field(std::string_view name) {
        std::string key = lower(name);
        if (key == "types") return &types;
        if (key == "uris") return &uris;
        if (key == "suites") return &suites;
        if (key == "components") return &components;
        if (key == "signed-by") return &signed_by;
        if (key == "enabled") return &enabled;
        return nullptr;
    }

    [[nodiscard]] std::optional<AptSource> source() const {
        std::string state = lower(enabled);
        for (std::string_view no : {"no", "false", "off", "disable", "0"})
            if (words(state) == std::vector<std::string>{std::string(no)}) return std::nullopt;
        if (!contains(words(types), "deb")) return std::nullopt;
        AptSource out{words(uris), words(suites), words(components), signed_by};
        if (out.uris.empty() || out.suites.empty()) return std::nullopt;
        return out;
    }
};

enum class Archive { neither, main, security };

// Which of Debian's two archives a URI names, judged by its path: ".../debian" and ".../debian-security".
Archive archive_of(std::string_view uri) {
    while (uri.ends_with('/')) uri.remove_suffix(1);
    if (uri.ends_with("/debian-security")) return Archive::security;
    if (uri.ends_with("/debian")) return Archive::main;
    // Snapshots end in a date: .../archive/debian/20250520T000000Z
    if (uri.find("/archive/debian-security/") != std::string_view::npos) return Archive::security;
    if (uri.find("/archive/debian/") != std::string_view::npos) return Archive::main;
    return Archive::neither;
}

bool is_debian_suite(std::string_view suite) {
    static constexpr std::array<std::string_view, 9> kNames = {
        "bookworm", "trixie", "forky", "sid", "stable", "oldstable", "testing", "unstable", "oldoldstable"};
    for (std::string_view ending : {"-updates", "-security", "/updates", "-backports"})
        if (suite.ends_with(ending)) suite.remove_suffix(ending.size());
    return contains(kNames, suite);
}

// Third parties also serve ".../debian bookworm main", but with keys of their own.
bool is_debian(const AptSource& source) {
    if (!source.signed_by.empty() && source.signed_by.find("debian-archive") == std::string::npos)
        return false;
    return contains(source.components, "main") && std::ranges::any_of(source.suites, is_debian_suite);
}

}  // namespace

std::vector<AptSource> parse_one_line_sources(std::string_view text) {
    std::vector<AptSource> out;
    for_each_line(text, [&](std::string_view line) {
        line = line.substr(0, line.find('#'));
        AptSource source;
        std::size_t start = line.find_first_not_of(" \t");
        if (start == std::string_view::npos) return;
        line.remove_prefix(start);
        if (!line.starts_with("deb ") && !line.starts_with("deb\t")) return;
        line.remove_prefix(4);
        std::size_t open = line.find_first_not_of(" \t");
        if (open == std::string_view::npos) return;
        if (line[open] == '[') {
            std::size_t close = line.find(']');
            if (close == std::string_view::npos) return;
            for (const std::string& option : words(line.substr(open + 1, close - open - 1)))
                if (option.starts_with("signed-by=")) source.signed_by = option.substr(10);
            line.remove_prefix(close + 1);
        }
        std::vector<std::string> parts = words(line);
        if (parts.size() < 2) return;
        source.uris = {parts[0]};
        source.suites = {parts[1]};
        source.components.assign(parts.begin() + 2, parts.end());
        out.push_back(std::move(source));
    });
    return out;
}

std::vector<AptSource> parse_deb822_sources(std::string_view text) {
    std::vector<AptSource> out;
    Stanza stanza;
    std::string* field = nullptr;
    auto flush = [&] {
        if (auto source = stanza.source()) out.push_back(std::move(*source));
        stanza = {};
        field = nullptr;
    };
    for_each_line(text, [&](std::string_view line) {
        if (line.starts_with('#')) return;
        if (words(line).empty()) return flush();
        if (line[0] == ' ' || line[0] == '\t') {  // goes on with the field above
            if (field != nullptr) field->append(" ").append(line);
            return;
        }
        std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) return;
        field = stanza.field(line.substr(0, colon));
        if (field != nullptr) *field = line.substr(colon + 1);
    });
    flush();
    return out;
}

DebianMirrors choose_debian_mirrors(const std::vector<AptSource>& sources) {
    DebianMirrors mirrors;
    bool have_main = false, have_security = false;
    for (const AptSource& source : sources) {
        if (!is_debian(source)) continue;
        for (std::string uri : source.uris) {
            while (uri.ends_with('/')) uri.pop_back();
            Archive archive = archive_of(uri);
            if (archive == Archive::main && !std::exchange(have_main, true)) mirrors.archive = uri;
            if (archive == Archive::security && !std::exchange(have_security, true)) mirrors.security = uri;
        }
    }
    return mirrors;
}

DebianMirrors detect_debian_mirrors(const fs::path& etc_apt) {
    std::vector<fs::path> files = {etc_apt / "sources.list"};
    std::error_code ec;
    for (fs::directory_iterator it(etc_apt / "sources.list.d", ec), end; !ec && it != end; it.increment(ec))
        files.push_back(it->path());
    std::ranges::sort(files);
    std::vector<AptSource> sources;
    for (const fs::path& file : files) {
        if (file.extension() != ".list" && file.extension() != ".sources") continue;
        auto text = read_file(file);
        if (!text) continue;
        auto found =
            file.extension() == ".list" ? parse_one_line_sources(*text) : parse_deb822_sources(*text);
        sources.insert(sources.end(), found.begin(), found.end());
    }
    // mirror+file:/etc/apt/mirrors/debian.list (Debian's cloud images): the list's first server stands for
    // it.
    for (AptSource& source : sources) {
        for (std::string& uri : source.uris) {
            std::string_view path = uri;
            if (!path.starts_with("mirror+file:")) continue;
            path.remove_prefix(12);
            while (path.starts_with("//")) path.remove_prefix(1);
            auto list = read_file(path);
            std::vector<std::string> servers = list ? words(*list) : std::vector<std::string>{};
            uri = servers.empty() ? "" : servers.front();
        }
    }
    return choose_debian_mirrors(sources);
}

std::string debian_sources_list(const DebianMirrors& mirrors, std::string_view suite) {
    std::string out;
    auto line = [&](std::string_view uri, std::string_view ending) {
        out += fmt::format("deb [signed-by={}] {} {}{} main\n", kKeyring, uri, suite, ending);
    };
    line(mirrors.archive, "");
    line(mirrors.archive, "-updates");
    line(mirrors.security, "-security");
    return out;
}

std::vector<std::string> host_apt_options() {
    std::vector<std::string> out;
    auto dump = run_checked({"apt-config", "dump", "--format", "%f \"%v\";%n", "Acquire"});
    if (!dump) return out;
    for_each_line(dump->out, [&](std::string_view line) {
        for (std::string_view name :
             {"Acquire::http::Proxy", "Acquire::https::Proxy", "Acquire::https::CaInfo",
              "Acquire::Check-Valid-Until", "Acquire::Check-Date"})
            if (line.starts_with(name) && line.substr(name.size()).starts_with(" \"")) out.emplace_back(line);
    });
    return out;
}

}  // namespace gb::image
