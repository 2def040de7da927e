// SPDX-License-Identifier: Apache-2.0
// Contract 3.2, 3.4, 3.6 and the F cases, against a running agent.
#include <fstream>

#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/file.h"
#include "guest/agent/files_http_testing.h"
#include "base/file_signature.h"

namespace gb::agent {
namespace {

// F1, F2, F3
TEST(Files, RoundTripOfManySizes) {
    const TestAgent agent;
    const TestFolder folder;
    for (const std::size_t size : {0UL, 1UL, 18432UL, 65535UL, 65536UL, 65537UL, 1048576UL, 20'000'001UL}) {
        const std::string data = pattern(size);
        const std::string path = folder.path("f");
        const auto written = upload(agent, path, data);
        ASSERT_EQ(written.head.status, 200) << written.body;
        EXPECT_EQ(written.body, R"([{"path":")" + path + R"(","name":"f","type":"file"}])");
        const auto read = download(agent, path);
        EXPECT_EQ(read.head.status, 200);
        EXPECT_EQ(read.head.headers.get("Content-Length"), std::to_string(size));
        EXPECT_TRUE(read.body == data) << size;
    }
}

// F10
TEST(Files, OddNames) {
    const TestAgent agent;
    const TestFolder folder;
    for (const char* name : {"a b", "\xC3\xBC\xE4\xB8\xAD", "q\"q'q", "100%25 %", "line\nbreak", "-rf",
                             ".hidden", "a+b&c=d#e?f", "back\\slash", "~"}) {
        const std::string path = folder.path(name);
        ASSERT_EQ(upload(agent, path, name).head.status, 200) << name;
        EXPECT_EQ(read_file(path), name);
        const auto read = download(agent, path);
        EXPECT_EQ(read.body, name);
        EXPECT_TRUE(read.head.headers.get("Content-Disposition").starts_with("inline; filename=")) << name;
    }
}

TEST(Files, ModesOwnersAndParents) {
    const TestAgent agent;
    const TestFolder folder;
    ASSERT_EQ(upload(agent, folder.path("new/deep/f"), "1").head.status, 200);
    struct stat st{};
    ASSERT_EQ(::stat(folder.path("new/deep/f").c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0644U);
    ASSERT_EQ(::stat(folder.path("new/deep").c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0755U);
    // An executable stays one, and a link stays a link.
    std::ofstream(folder.path("tool")) << "old";
    ::chmod(folder.path("tool").c_str(), 0755);
    std::filesystem::create_symlink("tool", folder.path("link"));
    ASSERT_EQ(upload(agent, folder.path("link"), "new").head.status, 200);
    EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
    EXPECT_EQ(read_file(folder.path("tool")), "new");
    ASSERT_EQ(::stat(folder.path("tool").c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0755U);
    // No temporary file is left.
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 3);
}

TEST(Files, UploadedByAnotherUserBelongsToThem) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    const TestAgent agent;
    const TestFolder folder;
    TestClient client(agent);
    const auto written = client.send("POST", files_url(folder.path("made/f")) + "&username=nobody",
                                     {{"Content-Type", "application/octet-stream"}}, "x");
    ASSERT_EQ(written.head.status, 200) << written.body;
    struct stat file{}, parent{};
    ASSERT_EQ(::stat(folder.path("made/f").c_str(), &file), 0);
    ASSERT_EQ(::stat(folder.path("made").c_str(), &parent), 0);
    EXPECT_NE(file.st_uid, 0U);
    EXPECT_EQ(parent.st_uid, file.st_uid);
    EXPECT_EQ(client.send("POST", files_url(folder.path("f")) + "&username=who", {}, "x").head.status, 401);
}

TEST(Files, ErrorsOfDownloads) {
    const TestAgent agent;
    const TestFolder folder;
    const auto missing = download(agent, folder.path("none"));
    EXPECT_EQ(missing.head.status, 404);
    EXPECT_EQ(missing.body,
              R"({"code":404,"message":"path ')" + folder.path("none") + R"(' does not exist"})");
    const auto directory = download(agent, folder.path());
    EXPECT_EQ(directory.head.status, 400);
    EXPECT_EQ(directory.body, R"({"code":400,"message":"path ')" + folder.path() + R"(' is a directory"})");
    ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
    EXPECT_EQ(download(agent, folder.path("pipe")).head.status, 400);
    EXPECT_EQ(download(agent, "/proc/self/stat").head.status, 200);
    EXPECT_FALSE(download(agent, "/proc/self/stat").body.empty());
}

TEST(Files, ErrorsOfUploads) {
    const TestAgent agent;
    const TestFolder folder;
    const auto directory = upload(agent, folder.path(), "x");
    EXPECT_EQ(directory.head.status, 400);
    EXPECT_EQ(directory.body, R"({"code":400,"message":"path is a directory: )" + folder.path() + R"("})");
    std::ofstream(folder.path("file")) << "x";
    EXPECT_EQ(upload(agent, folder.path("file/below"), "x").head.status, 400);
    EXPECT_EQ(upload(agent, folder.path(std::string(300, 'n')), "x").head.status, 400);
    TestClient client(agent);
    EXPECT_EQ(client.send("POST", "/files", {{"Content-Type", "application/octet-stream"}}, "x").head.status,
              400);
    EXPECT_EQ(
        client.send("POST", files_url(folder.path("f")), {{"Content-Type", "text/plain"}}, "x").head.status,
        400);
    // The rest of a large body is taken before the answer, so that the client gets to read it.
    EXPECT_EQ(upload(agent, folder.path(), pattern(5'000'000)).head.status, 400);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Files, NoSpaceIs507) {
    const TestAgent agent;
    const auto full = upload(agent, "/dev/full", "x");
    EXPECT_EQ(full.head.status, 507);
    EXPECT_NE(full.body.find("not enough disk space"), std::string::npos) << full.body;
}

TEST(Files, AnUploadThatBreaksOffLeavesTheOldFile) {
    const TestAgent agent;
    const TestFolder folder;
    ASSERT_EQ(upload(agent, folder.path("f"), "old").head.status, 200);
    {
        TestClient client(agent);
        http::RequestHead head{"POST",
                               files_url(folder.path("f")),
                               {{"Host", "x"}, {"Content-Type", "application/octet-stream"}}};
        ASSERT_TRUE(client.run(client.connection().start(std::move(head), 1000)));
        ASSERT_TRUE(client.run(client.connection().write("half of it")));
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(read_file(folder.path("f")), "old");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Files, RangesAndConditions) {
    const TestAgent agent;
    const TestFolder folder;
    ASSERT_EQ(upload(agent, folder.path("f.txt"), "0123456789").head.status, 200);
    const auto part = download(agent, folder.path("f.txt"), {{"Range", "bytes=2-4"}});
    EXPECT_EQ(part.head.status, 206);
    EXPECT_EQ(part.body, "234");
    EXPECT_EQ(part.head.headers.get("Content-Range"), "bytes 2-4/10");
    EXPECT_EQ(part.head.headers.get("Content-Type"), "text/plain; charset=utf-8");
    EXPECT_EQ(download(agent, folder.path("f.txt"), {{"Range", "bytes=20-"}}).head.status, 416);
    const std::string modified(part.head.headers.get("Last-Modified"));
    EXPECT_EQ(download(agent, folder.path("f.txt"), {{"If-Modified-Since", modified}}).head.status, 304);
    const auto zipped = download(agent, folder.path("f.txt"), {{"Accept-Encoding", "gzip, identity;q=0"}});
    EXPECT_EQ(zipped.head.headers.get("Content-Encoding"), "gzip");
    EXPECT_EQ(gunzip(zipped.body, 100), "0123456789");
    EXPECT_EQ(download(agent, folder.path("f.txt"), {{"Accept-Encoding", "br, identity;q=0"}}).head.status,
              406);
    EXPECT_EQ(download(agent, folder.path("f.txt"), {{"Accept-Encoding", "gzip"}})
                  .head.headers.get("Content-Encoding"),
              "gzip");
    EXPECT_EQ(download(agent, folder.path("f.txt"), {{"Accept-Encoding", "gzip, deflate"}}).body,
              "0123456789");

    const std::string tag(part.head.headers.get("ETag"));
    EXPECT_EQ(download(agent, folder.path("f.txt"), {{"If-None-Match", tag}}).head.status, 304);
    EXPECT_EQ(download(agent, folder.path("f.txt"), {{"If-Match", "\"other\""}}).head.status, 412);
    EXPECT_EQ(download(agent, folder.path("f.txt"), {{"If-Range", tag}, {"Range", "bytes=2-4"}}).body, "234");
    ASSERT_EQ(upload(agent, folder.path("f.txt"), "9876543210").head.status, 200);
    EXPECT_EQ(download(agent, folder.path("f.txt"), {{"If-Range", tag}, {"Range", "bytes=2-4"}}).body,
              "9876543210");
    EXPECT_EQ(download(agent, folder.path("f.txt"), {{"If-None-Match", tag}}).head.status, 200);
    const auto head = TestClient(agent).send("HEAD", files_url(folder.path("f.txt")));
    EXPECT_EQ(head.head.headers.get("Content-Length"), "10");
    EXPECT_EQ(head.body, "");
}

TEST(Files, PackedUpload) {
    const TestAgent agent;
    const TestFolder folder;
    const std::string data = pattern(300'000) + std::string(300'000, 'x');
    EXPECT_EQ(upload(agent, folder.path("f"), gzip(data), {{"Content-Encoding", "gzip"}}).head.status, 200);
    EXPECT_TRUE(read_file(folder.path("f")) == data);
    EXPECT_EQ(upload(agent, folder.path("g"), "no gzip", {{"Content-Encoding", "gzip"}}).head.status, 400);
    EXPECT_FALSE(std::filesystem::exists(folder.path("g")));
}

TEST(Files, F17_Metadata) {
    const TestAgent agent;
    const TestFolder folder;
    const auto written =
        upload(agent, folder.path("f"), "x", {{"X-Metadata-Author", "me"}, {"x-metadata-b", "2"}});
    if (written.body.find("without metadata") != std::string::npos) GTEST_SKIP() << "no user attributes here";
    EXPECT_EQ(written.body, R"([{"path":")" + folder.path("f") +
                                R"(","name":"f","type":"file","metadata":{"author":"me","b":"2"}}])");
    filesystem::StatRequest stat;
    stat.set_path(folder.path("f"));
    TestClient client(agent);
    const auto info = client.call<filesystem::StatResponse>("/filesystem.Filesystem/Stat", stat).first;
    EXPECT_EQ(info.entry().metadata().at("author"), "me");
    ASSERT_EQ(upload(agent, folder.path("f"), "y").head.status, 200);
    EXPECT_EQ(client.call<filesystem::StatResponse>("/filesystem.Filesystem/Stat", stat)
                  .first.entry()
                  .metadata_size(),
              0);
    EXPECT_EQ(upload(agent, folder.path("g"), "x", {{"X-Metadata-big", std::string(9000, 'v')}}).head.status,
              400);
}

std::string form(const std::vector<std::pair<std::string, std::string>>& files) {
    std::string body;
    for (const auto& [disposition, data] : files)
        body += "--BB\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\n" + data + "\r\n";
    return body + "--BB--\r\n";
}

TEST(Files, Forms) {
    const TestAgent agent;
    const TestFolder folder;
    const http::Headers headers{{"Content-Type", "multipart/form-data; boundary=BB"}};
    TestClient client(agent);
    const std::string data = pattern(200'000);
    const auto two = client.send("POST", "/files", headers,
                                 form({{"name=\"file\"; filename=\"" + folder.path("a/x") + "\"", data},
                                       {"name=\"other\"", "ignored"},
                                       {"name=\"file\"; filename=\"" + folder.path("b") + "\"", ""}}));
    ASSERT_EQ(two.head.status, 200) << two.body;
    EXPECT_TRUE(read_file(folder.path("a/x")) == data);
    EXPECT_EQ(read_file(folder.path("b")), "");
    EXPECT_NE(two.body.find(R"("name":"x")"), std::string::npos);
    const auto named =
        client.send("POST", files_url(folder.path("c")), headers, form({{"name=\"file\"", "text"}}));
    EXPECT_EQ(named.head.status, 200) << named.body;
    EXPECT_EQ(read_file(folder.path("c")), "text");
    const std::string twice = "name=\"file\"; filename=\"" + folder.path("d") + "\"";
    EXPECT_EQ(client.send("POST", "/files", headers, form({{twice, "1"}, {twice, "2"}})).head.status, 400);
    EXPECT_EQ(client.send("POST", files_url(folder.path("e")), headers, form({{twice, "1"}, {twice, "2"}}))
                  .head.status,
              400);
    EXPECT_EQ(client.send("POST", "/files", headers, form({{"name=\"file\"", "x"}})).head.status, 400);
    EXPECT_EQ(client.send("POST", "/files", headers, "--BB\r\n").head.status, 400);
}

TEST(Files, Compose) {
    const TestAgent agent;
    const TestFolder folder;
    ASSERT_EQ(upload(agent, folder.path("p1"), "one").head.status, 200);
    ASSERT_EQ(upload(agent, folder.path("p2"), "two").head.status, 200);
    TestClient client(agent);
    const auto compose = [&](const std::string& body) {
        return client.send("POST", "/files/compose", {{"Content-Type", "application/json"}}, body);
    };
    const std::string sources =
        R"({"source_paths":[")" + folder.path("p1") + R"(",")" + folder.path("p2") + R"("],)";
    const auto done = compose(sources + R"("destination":")" + folder.path("all") + R"("})");
    EXPECT_EQ(done.head.status, 200) << done.body;
    EXPECT_EQ(done.body, R"({"path":")" + folder.path("all") + R"(","name":"all","type":"file"})");
    EXPECT_EQ(read_file(folder.path("all")), "onetwo");
    EXPECT_FALSE(std::filesystem::exists(folder.path("p1")));
    EXPECT_EQ(compose(sources + R"("destination":")" + folder.path("x") + R"("})").head.status, 404);
    EXPECT_EQ(compose(R"({"source_paths":[],"destination":"/x"})").head.status, 400);
    EXPECT_EQ(compose(R"({"source_paths":"x"})").head.status, 400);
}

// F12
TEST(Files, AreThereForTheNextCommand) {
    const TestAgent agent;
    const TestFolder folder;
    ASSERT_EQ(upload(agent, folder.path("script"), "echo from the file").head.status, 200);
    EXPECT_EQ(start(agent, shell("sh " + folder.path("script"))).drain().out, "from the file\n");
    start(agent, shell("printf made > " + folder.path("made"))).drain();
    EXPECT_EQ(download(agent, folder.path("made")).body, "made");
}

}  // namespace
}  // namespace gb::agent
