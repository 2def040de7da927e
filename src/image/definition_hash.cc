// SPDX-License-Identifier: Apache-2.0
#include "image/definition_hash.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/crypto.h"
#include "base/file.h"
#include "image/ext4.h"
#include "image/rootfs.h"

namespace gb::image {
namespace fs = std::filesystem;
namespace {

// Length before content: no two sequences of parts give the same bytes.
class Canonical {
  public:
    void add(std::string_view part) { text_ += fmt::format("{}:{};", part.size(), part); }
    [[nodiscard]] const std::string& text() const { return text_; }

  private:
    std::string text_;
};

Result<std::string> describe(const fs::path& path, const fs::file_status& status) {
    std::error_code ec;
    if (fs::is_symlink(status)) {
        fs::path target = fs::read_symlink(path, ec);
        if (ec) return fail_errno(ec.value(), fmt::format("read link {}", path.string()));
        return "link " + target.string();
    }
    if (fs::is_directory(status)) return "folder";
    if (!fs::is_regular_file(status))
        return fail(ErrorCode::invalid_argument,
                    fmt::format("{} is neither a file, a folder nor a symbolic link", path.string()));
    bool executable = (status.permissions() & fs::perms::owner_exec) != fs::perms::none;
    GB_TRY_ASSIGN(std::string content, read_file(path));
    return (executable ? "program " : "file ") + sha256_hex(content);
}

Status add_tree(const fs::path& root, Canonical& canonical) {
    std::map<std::string, std::string> entries;
    std::error_code ec;
    fs::recursive_directory_iterator it(root, ec);
    for (; !ec && it != fs::recursive_directory_iterator(); it.increment(ec)) {
        GB_TRY_ASSIGN(std::string what, describe(it->path(), it->symlink_status()));
        entries[it->path().lexically_relative(root).string()] = std::move(what);
    }
    if (ec) return fail_errno(ec.value(), fmt::format("list {}", root.string()));
    for (const auto& [name, what] : entries) {
        canonical.add(name);
        canonical.add(what);
    }
    return {};
}

}  // namespace

Result<std::string> definition_hash(const TemplateDefinition& definition) {
    Canonical canonical;
    canonical.add("packages");
    for (const std::string& package : definition.packages) canonical.add(package);
    canonical.add("recipe");
    for (const std::string& part : rootfs_recipe()) canonical.add(part);
    for (const std::string& part : ext4_options()) canonical.add(part);
    canonical.add(std::to_string(definition.disk_mib));
    for (const Layer& layer : definition.layers) {
        canonical.add("layer");
        std::string script;
        if (!layer.setup.empty()) {
            GB_TRY_ASSIGN(script, read_file(layer.setup));
        }
        canonical.add(script);
        canonical.add("files");
        if (!layer.files.empty()) GB_TRY(add_tree(layer.files, canonical));
        canonical.add("npm");
        if (!layer.npm.empty()) GB_TRY(add_tree(layer.npm, canonical));
    }
    return sha256_hex(canonical.text()).substr(0, 16);
}

}  // namespace gb::image
