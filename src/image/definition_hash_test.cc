// SPDX-License-Identifier: Apache-2.0
#include "image/definition_hash.h"

#include <algorithm>
#include <set>

#include <sys/stat.h>

#include <gmock/gmock.h>

#include "image/test_folder.h"

namespace gb::image {
namespace {

std::string hash_of(const TemplateDefinition& definition) {
    auto hash = definition_hash(definition);
    EXPECT_TRUE(hash) << hash.error().message;
    return hash.value_or("");
}

// A definition with one of everything, made anew in `folder`.
TemplateDefinition sample(const TestFolder& folder) {
    folder.write("t/template.toml", "name = \"t\"\npackages = [\"bash\", \"git\"]\n");
    folder.write("t/setup", "#!/bin/sh\ntrue\n", 0755);
    folder.write("t/files/etc/hosts", "127.0.0.1 localhost\n");
    folder.write("t/files/opt/tool", "#!/bin/sh\n", 0755);
    folder.write("t/npm/package.json", "{}");
    folder.write("t/npm/package-lock.json", "{}");
    std::error_code ec;
    std::filesystem::create_symlink("tool", folder.path() / "t/files/opt/link", ec);
    auto definition = load_definition(folder.path(), "t");
    EXPECT_TRUE(definition) << definition.error().message;
    return definition.value_or(TemplateDefinition{});
}

TEST(DefinitionHash, SixteenDigitsAndTheSameWhereverItLies) {
    TestFolder one, two;
    std::string hash = hash_of(sample(one));
    EXPECT_THAT(hash, testing::MatchesRegex("[0-9a-f]{16}"));
    EXPECT_EQ(hash, hash_of(sample(two)));
}

TEST(DefinitionHash, IndependentOfTheOrderInWhichFilesWereMade) {
    TestFolder forward, backward;
    std::vector<std::string> names;
    for (int i = 0; i < 50; ++i)
        names.push_back("t/files/d" + std::to_string(i % 7) + "/f" + std::to_string(i));
    for (const std::string& name : names) forward.write(name, name);
    std::ranges::reverse(names);
    for (const std::string& name : names) backward.write(name, name);
    EXPECT_EQ(hash_of(sample(forward)), hash_of(sample(backward)));
}

TEST(DefinitionHash, ChangesWithEveryInput) {
    std::set<std::string> seen;
    auto expect_new = [&](const char* what, auto change) {
        TestFolder folder;
        TemplateDefinition definition = sample(folder);
        change(folder, definition);
        EXPECT_TRUE(seen.insert(hash_of(definition)).second) << what;
    };
    expect_new("nothing", [](auto&, auto&) {});
    expect_new("package added", [](auto&, auto& d) { d.packages.emplace_back("zip"); });
    expect_new("package gone", [](auto&, auto& d) { d.packages.pop_back(); });
    expect_new("packages joined", [](auto&, auto& d) { d.packages = {"bashgit"}; });
    expect_new("disk size", [](auto&, auto& d) { d.disk_mib += 1; });
    expect_new("setup", [](auto& f, auto&) { f.write("t/setup", "#!/bin/sh\nfalse\n", 0755); });
    expect_new("no setup", [](auto&, auto& d) { d.layers[0].setup.clear(); });
    expect_new("no files", [](auto&, auto& d) { d.layers[0].files.clear(); });
    expect_new("no npm", [](auto&, auto& d) { d.layers[0].npm.clear(); });
    expect_new("npm version",
               [](auto& f, auto&) { f.write("t/npm/package-lock.json", "{\"a\": \"2\"}"); });
    expect_new("content", [](auto& f, auto&) { f.write("t/files/etc/hosts", "127.0.0.2 localhost\n"); });
    expect_new("executable bit",
               [](auto& f, auto&) { f.write("t/files/etc/hosts", "127.0.0.1 localhost\n", 0755); });
    expect_new("file added", [](auto& f, auto&) { f.write("t/files/etc/new", ""); });
    expect_new("folder added", [](auto& f, auto&) { ASSERT_TRUE(make_dirs(f.path() / "t/files/empty")); });
    expect_new("file renamed", [](auto& f, auto&) {
        std::filesystem::rename(f.path() / "t/files/etc/hosts", f.path() / "t/files/etc/host");
    });
    expect_new("link target", [](auto& f, auto&) {
        std::filesystem::remove(f.path() / "t/files/opt/link");
        std::filesystem::create_symlink("other", f.path() / "t/files/opt/link");
    });
    expect_new("layer added", [](auto&, auto& d) { d.layers.push_back({.name = "empty"}); });
}

TEST(DefinitionHash, StaysWhenTheRootFileSystemStays) {
    TestFolder folder;
    TemplateDefinition definition = sample(folder);
    std::string before = hash_of(definition);
    definition.memory_mib = 4096;
    definition.cpu_count = 4;
    definition.start_cmd = "sleep 1";
    definition.env["A"] = "1";
    definition.description = "new";
    std::filesystem::permissions(folder.path() / "t/files/etc/hosts", std::filesystem::perms::owner_read);
    EXPECT_EQ(hash_of(definition), before);
}

TEST(DefinitionHash, RefusesWhatCannotBeCopied) {
    TestFolder folder;
    TemplateDefinition definition = sample(folder);
    ASSERT_EQ(::mkfifo((folder.path() / "t/files/pipe").c_str(), 0600), 0);
    auto hash = definition_hash(definition);
    ASSERT_FALSE(hash);
    EXPECT_EQ(hash.error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace gb::image
