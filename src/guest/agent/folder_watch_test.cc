// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/folder_watch.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <thread>

#include <sys/stat.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "guest/agent/agent_test_support.h"
#include "guest/agent/folders.h"
#include "guest/agent/upload_file.h"

namespace gb::agent {
namespace {

namespace fs = std::filesystem;

std::string text(const WatchEvent& event) {
    std::string type = filesystem::EventType_Name(event.type);
    return type.substr(std::string_view("EVENT_TYPE_").size()) + " " + event.name;
}

// Whatever has happened up to now.
std::vector<std::string> drain(FolderWatch& watch) {
    std::vector<std::string> out;
    for (;;) {
        auto events = watch.read();
        EXPECT_TRUE(events) << events.error().message;
        if (!events || events->empty()) return out;
        for (const WatchEvent& event : *events) out.push_back(text(event));
    }
}

using Events = std::vector<std::string>;

FolderWatch open(const TestFolder& folder, bool recursive = false) {
    return FolderWatch::open(folder.path(), {.recursive = recursive}).value();
}

void write(const std::string& path, std::string_view data) {
    std::ofstream(path, std::ios::binary | std::ios::app) << data;
}

User nobody_else() {
    return {"me", ::geteuid(), ::getegid(), "/", "/bin/sh"};
}

void upload(const std::string& path, std::string_view data) {
    auto file = UploadFile::create(path, nobody_else()).value();
    ASSERT_TRUE(file.write(data));
    ASSERT_TRUE(file.commit({{"key", "value"}}));
}

TEST(FolderWatch, OneEventForEachOperation) {
    const TestFolder folder;
    FolderWatch watch = open(folder);
    EXPECT_EQ(drain(watch), Events{});
    write(folder.path("a"), "x");
    EXPECT_EQ(drain(watch), (Events{"CREATE a", "WRITE a"}));
    write(folder.path("a"), "y");
    EXPECT_EQ(drain(watch), Events{"WRITE a"});
    ::chmod(folder.path("a").c_str(), 0600);
    EXPECT_EQ(drain(watch), Events{"CHMOD a"});
    fs::rename(folder.path("a"), folder.path("b"));
    EXPECT_EQ(drain(watch), (Events{"RENAME a", "CREATE b"}));
    fs::remove(folder.path("b"));
    EXPECT_EQ(drain(watch), Events{"REMOVE b"});
    fs::create_directory(folder.path("sub"));
    write(folder.path("sub/inside"), "x");  // not asked for
    EXPECT_EQ(drain(watch), Events{"CREATE sub"});
}

TEST(FolderWatch, OddNamesArriveAsTheyAre) {
    const TestFolder folder;
    FolderWatch watch = open(folder);
    for (const std::string name : {"-rf", "new\nline", "per%20cent", "日本", "\xFF\xFE", " ", "quote\"'"}) {
        std::ofstream(folder.path(name)).close();
        EXPECT_EQ(drain(watch), Events{"CREATE " + name});
    }
}

TEST(FolderWatch, AnUploadLooksLikeAWrite) {
    const TestFolder folder;
    FolderWatch watch = open(folder);
    upload(folder.path("new"), "one");
    EXPECT_EQ(drain(watch), (Events{"CREATE new", "CHMOD new", "WRITE new"}));
    upload(folder.path("new"), "two");
    EXPECT_EQ(drain(watch), Events{"WRITE new"});
    {
        auto given_up = UploadFile::create(folder.path("never"), nobody_else()).value();
        ASSERT_TRUE(given_up.write("half"));
        EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);  // nothing of it can be seen
    }
    EXPECT_EQ(drain(watch), Events{});
    EXPECT_EQ(read_file(folder.path("new")).value(), "two");
}

TEST(FolderWatch, AnOpenFileWithoutANameIsSilent) {
    const TestFolder folder;
    write(folder.path("a"), "x");
    const UniqueFd fd(::open(folder.path("a").c_str(), O_WRONLY | O_CLOEXEC));
    fs::remove(folder.path("a"));
    FolderWatch watch = open(folder);
    ASSERT_TRUE(write_all(fd.get(), "more"));
    EXPECT_EQ(drain(watch), Events{});
}

TEST(FolderWatch, NewFoldersAreWatchedWithWhatIsInThemAlready) {
    const TestFolder folder;
    fs::create_directories(folder.path("old/deep"));
    FolderWatch watch = open(folder, true);
    write(folder.path("old/deep/file"), "x");
    EXPECT_EQ(drain(watch), (Events{"CREATE old/deep/file", "WRITE old/deep/file"}));

    fs::create_directories(folder.path("n/m/o"));
    write(folder.path("n/m/o/file"), "x");
    std::ofstream(folder.path("n/empty")).close();
    Events events = drain(watch);
    std::ranges::sort(events);
    EXPECT_EQ(events, (Events{"CREATE n", "CREATE n/empty", "CREATE n/m", "CREATE n/m/o", "CREATE n/m/o/file",
                              "WRITE n/m/o/file"}));
    write(folder.path("n/m/o/file"), "x");
    EXPECT_EQ(drain(watch), Events{"WRITE n/m/o/file"});
    fs::remove_all(folder.path("n"));
    events = drain(watch);
    EXPECT_EQ(std::ranges::count(events, "REMOVE n"), 1);
    EXPECT_EQ(std::ranges::count(events, "REMOVE n/m/o/file"), 1);
    fs::create_directory(folder.path("n"));
    EXPECT_EQ(drain(watch), Events{"CREATE n"});
    write(folder.path("n/file"), "x");
    EXPECT_EQ(drain(watch), (Events{"CREATE n/file", "WRITE n/file"}));
}

TEST(FolderWatch, AFolderKeepsBeingWatchedUnderItsNewName) {
    const TestFolder folder, elsewhere;
    fs::create_directories(folder.path("a/b/c"));
    FolderWatch watch = open(folder, true);
    fs::create_directory(folder.path("x"));
    EXPECT_EQ(drain(watch), Events{"CREATE x"});
    fs::rename(folder.path("a/b"), folder.path("x/moved"));
    EXPECT_EQ(drain(watch), (Events{"RENAME a/b", "CREATE x/moved"}));
    write(folder.path("x/moved/c/file"), "x");
    EXPECT_EQ(drain(watch), (Events{"CREATE x/moved/c/file", "WRITE x/moved/c/file"}));

    fs::rename(folder.path("x/moved"), elsewhere.path("out"));
    EXPECT_EQ(drain(watch), Events{"RENAME x/moved"});
    write(elsewhere.path("out/c/file"), "unseen");
    EXPECT_EQ(drain(watch), Events{});
    fs::rename(elsewhere.path("out"), folder.path("back"));
    Events events = drain(watch);
    std::ranges::sort(events);
    EXPECT_EQ(events, (Events{"CREATE back", "CREATE back/c", "CREATE back/c/file", "WRITE back/c/file"}));
    write(folder.path("back/c/file"), "x");
    EXPECT_EQ(drain(watch), Events{"WRITE back/c/file"});
}

TEST(FolderWatch, MissesNothingWhileATreeGrows) {
    const TestFolder folder;
    FolderWatch watch = open(folder, true);
    std::set<std::string> made;
    for (int a = 0; a < 20; ++a)
        for (int b = 0; b < 5; ++b) {
            const std::string sub = "d" + std::to_string(a) + "/e" + std::to_string(b);
            made.insert({"d" + std::to_string(a), sub, sub + "/f", sub + "/f/leaf"});
        }
    std::jthread maker([&] {
        for (const std::string& name : made)
            if (name.ends_with("leaf"))
                write(folder.path(name), "x");
            else
                fs::create_directory(folder.path(name));
        write(folder.path("zz-done"), "x");
    });
    std::multiset<std::string> created;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!created.contains("CREATE zz-done") && std::chrono::steady_clock::now() < give_up)
        for (std::string& event : drain(watch))
            if (event.starts_with("CREATE ")) created.insert(std::move(event));
    for (const std::string& name : made) EXPECT_EQ(created.count("CREATE " + name), 1U) << name;
}

TEST(FolderWatch, LostEventsAreReported) {
    const TestFolder folder;
    const int most = std::stoi(read_file("/proc/sys/fs/inotify/max_queued_events").value());
    FolderWatch watch = open(folder);
    for (int i = 0; i <= most / 2; ++i) {
        write(folder.path("a"), "");
        fs::remove(folder.path("a"));
    }
    Result<std::vector<WatchEvent>> events;
    int seen = 0;
    while ((events = watch.read()) && !events->empty()) seen += static_cast<int>(events->size());
    ASSERT_FALSE(events);
    EXPECT_EQ(events.error().code, ErrorCode::data_loss);
    EXPECT_GT(seen, most / 2);
    EXPECT_FALSE(watch.read());  // and stays so
}

TEST(FolderWatch, EndsWithItsFolder) {
    TestFolder outer;
    fs::create_directory(outer.path("in"));
    auto watch = FolderWatch::open(outer.path("in"), {.recursive = true}).value();
    fs::remove(outer.path("in"));
    EXPECT_EQ(drain(watch), Events{"REMOVE ."});
    EXPECT_TRUE(watch.ended());
}

TEST(FolderWatch, SaysWhatCannotBeWatched) {
    const TestFolder folder;
    write(folder.path("file"), "x");
    EXPECT_EQ(FolderWatch::open(folder.path("missing"), {}).error().code, ErrorCode::not_found);
    EXPECT_EQ(FolderWatch::open(folder.path("file"), {}).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(FolderWatch::open(folder.path("file/below"), {}).error().code, ErrorCode::not_found);
}

TEST(FolderWatch, DoesNotGetLostInTheKernelsOwnTreesOrInLinks) {
    const TestFolder folder;
    fs::create_directory_symlink(folder.path(), folder.path("loop"));
    FolderWatch watch = open(folder, true);
    write(folder.path("a"), "x");
    EXPECT_EQ(drain(watch), (Events{"CREATE a", "WRITE a"}));
    fs::create_directory_symlink("/", folder.path("root"));
    EXPECT_EQ(drain(watch), Events{"CREATE root"});
    auto by_link = FolderWatch::open(folder.path("loop"), {});
    ASSERT_TRUE(by_link);
    write(folder.path("b"), "x");
    EXPECT_EQ(drain(*by_link), (Events{"CREATE b", "WRITE b"}));
}

}  // namespace
}  // namespace gb::agent
