// SPDX-License-Identifier: Apache-2.0
// Downloads of files whose length is not what stat says, or does not stay so.
#include <atomic>
#include <fstream>

#include <sys/stat.h>

#include <fcntl.h>

#include "base/file.h"
#include "guest/agent/file_source.h"
#include "guest/agent/files_http_testing.h"

namespace gb::agent {
namespace {

constexpr std::size_t kMiB = 1 << 20;

// One download, read when the test says so.
class SlowDownload {
  public:
    SlowDownload(const TestAgent& agent, const std::string& path, http::Headers headers = {}) : client_(agent) {
        headers.set("Host", "localhost");
        http::RequestHead request{"GET", files_url(path), std::move(headers)};
        if (!client_.run(client_.connection().start(std::move(request), 0)))
            throw std::runtime_error("no request");
        auto answer = client_.run(client_.connection().read_head());
        if (!answer) throw std::runtime_error(answer.error().message);
        head = *std::move(answer);
    }
    // All that comes; `cut` when the body does not end properly.
    std::string rest() {
        std::string out;
        for (;;) {
            const auto piece = client_.run(client_.connection().next());
            cut = !piece;
            if (!piece || piece->empty()) return out;
            out.append(*piece);
        }
    }
    http::ResponseHead head;
    bool cut = false;

  private:
    TestClient client_;
};

// A sparse file; more than sockets hold, so that most of it is unread while nobody reads the answer.
UniqueFd large_file(const std::string& path, std::size_t size) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
    return fd;
}

TEST(Downloads, WhatTheKernelMakesComesAsItIsRead) {
    const TestAgent agent;
    for (const char* path : {"/sys/class/net/lo/mtu", "/sys/class/net/lo/type", "/proc/cpuinfo", "/proc/version",
                             "/proc/filesystems", "/proc/sys/kernel/ostype", "/proc/1/cmdline"}) {
        const auto expected = read_file(path);
        ASSERT_TRUE(expected) << path;
        const auto plain = download(agent, path);
        EXPECT_EQ(plain.head.status, 200) << path;
        EXPECT_EQ(plain.head.headers.get("Content-Length"), std::to_string(plain.body.size())) << path;
        // stat's time and length say nothing about versions.
        EXPECT_FALSE(plain.head.headers.has("ETag") || plain.head.headers.has("Last-Modified")) << path;
        EXPECT_EQ(download(agent, path, {{"If-Modified-Since", "Fri, 31 Dec 9999 23:59:59 GMT"}}).head.status, 200);
        const auto zipped = download(agent, path, {{"Accept-Encoding", "gzip"}});
        EXPECT_EQ(zipped.head.headers.get("Content-Encoding"), "gzip");
        const std::string unzipped = gunzip(zipped.body, kMiB).value();
        if (std::string_view(path) != "/proc/cpuinfo") {  // clock frequencies change
            EXPECT_EQ(plain.body, *expected) << path;
            EXPECT_EQ(unzipped, *expected) << path;
        } else {
            EXPECT_TRUE(plain.body.starts_with("processor") && unzipped.starts_with("processor"));
        }
        EXPECT_FALSE(TestClient(agent).send("HEAD", files_url(path)).head.headers.get("Content-Length").empty());
    }
}

TEST(Downloads, RangesOfWhatTheKernelMakesAreOfItsBytes) {
    const TestAgent agent;
    const std::string mtu = read_file("/sys/class/net/lo/mtu").value();
    const auto part = download(agent, "/sys/class/net/lo/mtu", {{"Range", "bytes=1-"}});
    EXPECT_EQ(part.head.status, 206);
    EXPECT_EQ(part.body, mtu.substr(1));
    EXPECT_EQ(part.head.headers.get("Content-Range"),
              "bytes 1-" + std::to_string(mtu.size() - 1) + "/" + std::to_string(mtu.size()));
    const auto behind = download(agent, "/sys/class/net/lo/mtu", {{"Range", "bytes=100-"}});
    EXPECT_EQ(behind.head.status, 416);
    EXPECT_EQ(behind.head.headers.get("Content-Range"), "bytes */" + std::to_string(mtu.size()));
}

TEST(Downloads, AMebibyteThatTheKernelMakesHasNoPromise) {
    const auto expected = read_file("/proc/kallsyms");
    if (!expected || expected->size() < kMiB) GTEST_SKIP() << "no such file here";
    const TestAgent agent;
    const auto whole = download(agent, "/proc/kallsyms");
    EXPECT_FALSE(whole.head.headers.has("Content-Length"));
    EXPECT_TRUE(whole.body == *expected);
    const auto zipped = download(agent, "/proc/kallsyms", {{"Accept-Encoding", "gzip"}});
    EXPECT_TRUE(gunzip(zipped.body, std::size_t{64} * kMiB).value() == *expected);
    EXPECT_EQ(download(agent, "/proc/kallsyms", {{"Range", "bytes=0-9"}}).head.status, 200);
    EXPECT_EQ(TestClient(agent).send("HEAD", files_url("/proc/kallsyms")).head.status, 200);
}

TEST(Downloads, AFileThatCannotBeReadIsAnError) {
    const TestAgent agent;
    const auto memory = download(agent, "/proc/self/mem");  // nothing is at address 0
    EXPECT_EQ(memory.head.status, 500);
    EXPECT_NE(memory.body.find("read '/proc/self/mem'"), std::string::npos) << memory.body;
}

TEST(Downloads, ALargeFileThatIsWrittenMayBeCut) {
    const TestAgent agent;
    const TestFolder folder;
    const UniqueFd writer = large_file(folder.path("f"), 64 * kMiB);
    SlowDownload plain(agent, folder.path("f"));
    SlowDownload zipped(agent, folder.path("f"), {{"Accept-Encoding", "gzip"}});
    EXPECT_FALSE(plain.head.headers.has("Content-Length"));
    ASSERT_EQ(::ftruncate(writer.get(), kMiB), 0);
    const std::string body = plain.rest();
    EXPECT_FALSE(plain.cut);
    EXPECT_LT(body.size(), 64 * kMiB);
    EXPECT_GE(body.size(), kMiB);
    const std::string unzipped = gunzip(zipped.rest(), 64 * kMiB).value();
    EXPECT_FALSE(zipped.cut);
    EXPECT_GE(unzipped.size(), kMiB);
}

TEST(Downloads, ALargeFileAtRestHasItsLengthOrIsCut) {
    const TestAgent agent;
    const TestFolder folder;
    large_file(folder.path("f"), 64 * kMiB).reset();
    SlowDownload whole(agent, folder.path("f"));
    EXPECT_EQ(whole.head.headers.get("Content-Length"), std::to_string(64 * kMiB));
    EXPECT_EQ(whole.rest().size(), 64 * kMiB);
    SlowDownload broken(agent, folder.path("f"));
    SlowDownload part(agent, folder.path("f"), {{"Range", "bytes=1-"}});
    EXPECT_EQ(part.head.headers.get("Content-Length"), std::to_string(64 * kMiB - 1));
    std::filesystem::resize_file(folder.path("f"), kMiB);
    EXPECT_LT(broken.rest().size(), 64 * kMiB);
    EXPECT_TRUE(broken.cut);
    part.rest();
    EXPECT_TRUE(part.cut);
}

// Whoever looks whether a file is at rest must not end by the kernel's word that it no longer is.
TEST(Downloads, AFileIsAtRestWhileNobodyWritesIt) {
    const TestFolder folder;
    UniqueFd writer = large_file(folder.path("f"), kMiB);
    const auto source = FileSource::open(folder.path("f"));
    ASSERT_TRUE(source);
    if (source->lengths != Lengths::exact) GTEST_SKIP() << "the temporary folder is no local file system";
    EXPECT_FALSE(source->is_at_rest());
    writer.reset();
    EXPECT_TRUE(source->is_at_rest());
    std::atomic<bool> stop = false;
    std::thread opener([&] {
        while (!stop) UniqueFd(::open(folder.path("f").c_str(), O_RDWR | O_CLOEXEC));
    });
    for (int i = 0; i < 2000; ++i) (void)source->is_at_rest();
    stop = true;
    opener.join();
}

// It ends although the log never does.
TEST(Downloads, AGrowingLogIsWhatItWasAtTheRequest) {
    const TestAgent agent;
    const TestFolder folder;
    const std::string block(256 * 1024, 'l');
    std::ofstream log(folder.path("log"), std::ios::binary);
    log << block << block << block << std::flush;
    std::atomic<bool> stop = false;
    std::atomic<std::size_t> pieces = 0;
    std::thread writer([&] {
        while (!stop && pieces < 1000) {
            log << block << std::flush;
            ++pieces;
        }
    });
    for (const char* coding : {"identity", "gzip"}) {
        const auto read = download(agent, folder.path("log"), {{"Accept-Encoding", coding}});
        const std::string body = coding == std::string_view("gzip") ? gunzip(read.body, 512 * kMiB).value() : read.body;
        EXPECT_EQ(read.head.status, 200);
        EXPECT_GE(body.size(), 3 * block.size());
        EXPECT_EQ(body.find_first_not_of('l'), std::string::npos);
    }
    stop = true;
    writer.join();
}

// Rewritten all the time, in place: every answer is whole, whatever it caught.
TEST(Downloads, ASmallFileKeepsItsPromiseWhileItIsRewritten) {
    const TestAgent agent;
    const TestFolder folder;
    std::ofstream(folder.path("f")) << "x";
    std::atomic<bool> stop = false;
    std::thread writer([&] {
        const std::string data(200'000, 'x');
        for (std::size_t i = 0; !stop; ++i) {
            const UniqueFd fd(::open(folder.path("f").c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
            (void)write_all(fd.get(), std::string_view(data).substr(0, i * 7919 % data.size()));
        }
    });
    TestClient client(agent);
    for (int i = 0; i < 300; ++i) {
        const auto read = client.send("GET", files_url(folder.path("f")));
        EXPECT_EQ(read.head.headers.get("Content-Length"), std::to_string(read.body.size()));
        const auto part = client.send("GET", files_url(folder.path("f")), {{"Range", "bytes=1000-150000"}});
        if (part.head.status == 206)
            EXPECT_TRUE(part.head.headers.get("Content-Range")
                            .starts_with("bytes 1000-" + std::to_string(999 + part.body.size()) + "/"));
        else
            EXPECT_TRUE(part.head.status == 416 || part.head.status == 200) << part.head.status;
    }
    stop = true;
    writer.join();
}

TEST(Downloads, WhatTheKernelMakesIsComposedAsItIsRead) {
    const TestAgent agent;
    const TestFolder folder;
    std::ofstream(folder.path("first")) << "first\n";
    std::ofstream(folder.path("last")) << "last\n";
    const auto done = TestClient(agent).send(
        "POST", "/files/compose", {{"Content-Type", "application/json"}},
        R"({"source_paths":[")" + folder.path("first") +
            R"(","/sys/class/net/lo/mtu","/proc/version",")" + folder.path("last") + R"("],"destination":")" +
            folder.path("all") + R"("})");
    ASSERT_EQ(done.head.status, 200) << done.body;
    EXPECT_EQ(read_file(folder.path("all")).value(), "first\n" + read_file("/sys/class/net/lo/mtu").value() +
                                                          read_file("/proc/version").value() + "last\n");
}

}  // namespace
}  // namespace gb::agent
