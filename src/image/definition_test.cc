// SPDX-License-Identifier: Apache-2.0
#include "image/definition.h"

#include <gmock/gmock.h>

#include "image/test_folder.h"

namespace gb::image {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DefinitionTest : public testing::Test {
  protected:
    void define(const std::string& name, std::string_view text) {
        images_.write(name + "/template.toml", text);
    }
    Result<TemplateDefinition> load(std::string_view name) { return load_definition(images_.path(), name); }

    // The message of the error that loading `text` as template "t" gives.
    std::string complaint(std::string_view text) {
        define("t", text);
        auto definition = load("t");
        if (definition) return "no error";
        EXPECT_EQ(definition.error().code, ErrorCode::invalid_argument);
        return definition.error().message;
    }
    std::string file() const { return (images_.path() / "t/template.toml").string(); }

    TestFolder images_;
};

TEST_F(DefinitionTest, AllFields) {
    define("base", R"(
name = "base"
description = "small"
cpu_count = 2
memory_mib = 512
disk_mib = 4096
start_cmd = "sleep 1"
ready_cmd = "true"
ready_timeout = "25m"
default_user = "user"
workdir = "/home/user"
packages = ["git", "bash", "git"]
[env]
LANG = "C.UTF-8"
)");
    images_.write("base/setup", "#!/bin/sh\n", 0755);
    images_.write("base/files/etc/hosts", "127.0.0.1 localhost\n");
    auto d = load("base");
    ASSERT_TRUE(d) << d.error().message;
    EXPECT_EQ(d->name, "base");
    EXPECT_EQ(d->description, "small");
    EXPECT_EQ(d->cpu_count, 2);
    EXPECT_EQ(d->memory_mib, 512);
    EXPECT_EQ(d->disk_mib, 4096);
    EXPECT_EQ(d->start_cmd, "sleep 1");
    EXPECT_EQ(d->ready_cmd, "true");
    EXPECT_EQ(d->ready_timeout, std::chrono::minutes(25));
    EXPECT_THAT(d->packages, ElementsAre("bash", "git"));
    EXPECT_EQ(d->env.at("LANG"), "C.UTF-8");
    ASSERT_EQ(d->layers.size(), 1U);
    EXPECT_EQ(d->layers[0].setup, images_.path() / "base/setup");
    EXPECT_EQ(d->layers[0].files, images_.path() / "base/files");
}

TEST_F(DefinitionTest, ChildAddsToItsParent) {
    define("base",
           "name = \"base\"\ndescription = \"b\"\nmemory_mib = 512\ndisk_mib = 4096\npackages = [\"git\"]\n"
           "[env]\nA = \"1\"\nB = \"2\"\n");
    define("child",
           "name = \"child\"\nextends = \"base\"\nmemory_mib = 1024\npackages = [\"curl\", \"git\"]\n"
           "[env]\nB = \"3\"\n");
    images_.write("child/setup", "#!/bin/sh\n");
    auto d = load("child");
    ASSERT_TRUE(d) << d.error().message;
    EXPECT_EQ(d->name, "child");
    EXPECT_EQ(d->description, "");
    EXPECT_EQ(d->memory_mib, 1024);
    EXPECT_EQ(d->disk_mib, 4096);
    EXPECT_THAT(d->packages, ElementsAre("curl", "git"));
    EXPECT_EQ(d->env.at("A"), "1");
    EXPECT_EQ(d->env.at("B"), "3");
    ASSERT_EQ(d->layers.size(), 2U);
    EXPECT_EQ(d->layers[0].name, "base");
    EXPECT_TRUE(d->layers[0].setup.empty());
    EXPECT_EQ(d->layers[1].setup, images_.path() / "child/setup");
}

TEST_F(DefinitionTest, TheTimeToGetReadyIsSecondsOrText) {
    auto timeout_of = [this](const std::string& line) {
        define("t", "name = \"t\"\n" + line);
        auto d = load("t");
        return d ? d->ready_timeout : std::chrono::milliseconds(-1);
    };
    EXPECT_EQ(timeout_of(""), std::chrono::minutes(10));
    EXPECT_EQ(timeout_of("ready_timeout = 90\n"), std::chrono::seconds(90));
    EXPECT_EQ(timeout_of("ready_timeout = \"2h\"\n"), std::chrono::hours(2));
    for (const char* value : {"0", "-1", "1.5", "true", "\"soon\"", "\"10\"", "\"8d\"", "604801"})
        EXPECT_THAT(complaint(std::string("name = \"t\"\nready_timeout = ") + value + "\n"),
                    HasSubstr(":2: field 'ready_timeout' must be a time like \"90s\""))
            << value;
}

TEST_F(DefinitionTest, NpmPackagesMustBeLocked) {
    define("t", "name = \"t\"\n");
    images_.write("t/npm/package.json", "{}");
    auto unlocked = load("t");
    ASSERT_FALSE(unlocked);
    EXPECT_EQ(unlocked.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(unlocked.error().message, HasSubstr("package-lock.json is missing"));
    images_.write("t/npm/package-lock.json", "{}");
    auto locked = load("t");
    ASSERT_TRUE(locked) << locked.error().message;
    EXPECT_EQ(locked->layers[0].npm, images_.path() / "t/npm");
}

TEST_F(DefinitionTest, ComplaintsNameFileLineAndField) {
    EXPECT_EQ(complaint("name = \"t\"\nmemory_mb = 5\n"), file() + ":2: field 'memory_mb' is not known");
    EXPECT_EQ(complaint("name = \"t\"\n\ncpu_count = \"two\"\n"),
              file() + ":3: field 'cpu_count' must be a whole number from 1 to 64");
    EXPECT_EQ(complaint("name = \"t\"\ncpu_count = 0\n"),
              file() + ":2: field 'cpu_count' must be a whole number from 1 to 64");
    EXPECT_EQ(complaint("name = \"t\"\nmemory_mib = 512.5\n"),
              file() + ":2: field 'memory_mib' must be a whole number from 128 to 1048576");
    EXPECT_EQ(complaint("name = \"t\"\nstart_cmd = [\"a\"]\n"),
              file() + ":2: field 'start_cmd' must be a string");
    EXPECT_EQ(complaint("name = \"t\"\npackages = \"git\"\n"),
              file() + ":2: field 'packages' must be a list of package names");
    EXPECT_EQ(complaint("name = \"t\"\npackages = [\n\"git\",\n\"--variant=x\"]\n"),
              file() + ":4: field 'packages' has '--variant=x', which is not the name of a Debian package");
    EXPECT_EQ(complaint("name = \"t\"\nworkdir = \"home\"\n"),
              file() + ":2: field 'workdir' must be an absolute path");
    EXPECT_EQ(complaint("name = \"t\"\ndefault_user = \"a b\"\n"),
              file() + ":2: field 'default_user' is not a valid name of a user");
    EXPECT_EQ(complaint("name = \"t\"\n[env]\n\"A-B\" = \"1\"\n"),
              file() + ":3: field 'env.A-B' is not a valid name of a variable");
    EXPECT_EQ(complaint("name = \"t\"\n[env]\nA = 1\n"), file() + ":3: field 'env.A' must be a string");
    EXPECT_EQ(complaint("name = \"other\"\n"), file() + ":1: field 'name' must be 't', like its folder");
    EXPECT_EQ(complaint(""), file() + ": field 'name' must be 't', like its folder");
    EXPECT_EQ(complaint("name = \"t\"\nextends = \"nowhere\"\n"),
              file() + ":2: field 'extends' names 'nowhere', which does not exist beside it");
    EXPECT_THAT(complaint("name = \"t\"\nextends = \"t\"\n"),
                HasSubstr("field 'extends' goes round in a circle"));
    EXPECT_THAT(complaint("name = \"t\"\nextends = \"../t\"\n"),
                HasSubstr("'../t' is not a valid template name"));
    EXPECT_THAT(complaint("name = \"t\"\nname = \"t\"\n"), HasSubstr(file() + ":2: "));
    EXPECT_THAT(complaint("name = \"t\n"), HasSubstr(file() + ":1: "));
}

TEST_F(DefinitionTest, MissingAndListed) {
    auto missing = load("missing");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::not_found);
    EXPECT_THAT(missing.error().message, HasSubstr("template 'missing'"));
    EXPECT_EQ(load("../etc").error().code, ErrorCode::invalid_argument);
    define("b", "name = \"b\"\n");
    define("a", "name = \"a\"\n");
    images_.write("not-a-template/readme", "");
    auto names = list_definitions(images_.path());
    ASSERT_TRUE(names);
    EXPECT_THAT(*names, ElementsAre("a", "b"));
}

}  // namespace
}  // namespace gb::image
