// SPDX-License-Identifier: Apache-2.0
// Tests of the parts that are too small for a file of their own: gzip, JSON fields, /init, metrics, modes,
// users.
#include <filesystem>

#include <sys/stat.h>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"
#include "guest/agent/entry_info.h"
#include "guest/agent/gzip.h"
#include "guest/agent/init_request.h"
#include "guest/agent/launch.h"
#include "guest/agent/machine.h"
#include "guest/agent/metrics.h"
#include "guest/agent/rpc.h"
#include "guest/agent/system_setup.h"
#include "guest/agent/users.h"

namespace gb::agent {
namespace {

TEST(Gzip, RoundTripInAnyPieces) {
    std::string data;
    for (int i = 0; i < 50'000; ++i) data += std::to_string(i * 7919);
    const std::string packed = gzip(data);
    EXPECT_LT(packed.size(), data.size());
    EXPECT_EQ(gunzip(packed, data.size()), data);
    EXPECT_EQ(gunzip(packed, data.size() - 1).error().code, ErrorCode::too_large);
    EXPECT_EQ(gunzip(packed + gzip("more"), data.size() + 4), data + "more");  // several members are one file
    std::string out;
    Inflater inflater;
    for (char c : packed)
        ASSERT_TRUE(inflater.feed(std::string_view(&c, 1), [&](std::string_view piece) -> Status {
            out.append(piece);
            return {};
        }));
    EXPECT_TRUE(inflater.finish());
    EXPECT_EQ(out, data);
}

TEST(Gzip, DamageIsAnError) {
    EXPECT_FALSE(gunzip("not gzip at all", 100));
    EXPECT_FALSE(gunzip(gzip("hello").substr(0, 12), 100));
    EXPECT_FALSE(gunzip("", 100));
    EXPECT_EQ(gunzip(gzip(""), 100), "");
}

TEST(InitRequest, ReadsAllFields) {
    const auto request = parse_init_request(
        R"({"envVars":{"A":"1"},"accessToken":"t","timestamp":"2026-01-02T03:04:05.678Z","defaultUser":"user",)"
        R"("defaultWorkdir":"/app","hostname":"box","sandboxID":"i1","templateID":"t1","entropy":"aGk=",)"
        R"("lifecycleID":"x","volumeMounts":[{}],"caBundle":null})");
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_EQ(request->timestamp_ms, 1767323045678);
    EXPECT_EQ(request->entropy, "hi");
    Settings settings;
    settings.env = {{"OLD", "x"}};
    apply_init_request(*request, settings);
    EXPECT_EQ(settings.env,
              (Environment{
                  {"A", "1"}, {"E2B_SANDBOX", "true"}, {"E2B_SANDBOX_ID", "i1"}, {"E2B_TEMPLATE_ID", "t1"}}));
    EXPECT_EQ(settings.generation, 1U);
    apply_init_request(*parse_init_request(R"({"envVars":{}})"), settings);
    EXPECT_EQ(settings.env.count("A"), 0U);  // X25: replaced, not merged
    EXPECT_EQ(settings.env["E2B_SANDBOX_ID"], "i1");
    EXPECT_EQ(settings.access_token, "t");
    apply_init_request(*parse_init_request(""), settings);
    EXPECT_EQ(settings.default_workdir, "/app");
    EXPECT_EQ(settings.generation, 3U);
}

TEST(InitRequest, ErrorsNameTheField) {
    for (auto [body, field] : {std::pair{R"({"envVars":{"A":1}})", "envVars.A"},
                               {R"({"envVars":[]})", "envVars"},
                               {R"({"envVars":{"A=B":"x"}})", "envVars"},
                               {R"({"accessToken":5})", "accessToken"},
                               {R"({"timestamp":"now"})", "timestamp"},
                               {R"({"entropy":"%"})", "entropy"},
                               {R"({"defaultUser":""})", "defaultUser"},
                               {R"({"defaultWorkdir":"app"})", "defaultWorkdir"},
                               {R"({"defaultWorkdir":"/a\u0000b"})", "defaultWorkdir"},
                               {R"({"templateID":"a\u0000b"})", "templateID"},
                               {R"({"defaultUser":"\u0000"})", "defaultUser"},
                               {R"({"hostname":""})", "hostname"},
                               {R"({"hostname":"a\n10.0.0.1 b"})", "hostname"},
                               {"[1]", "body"},
                               {"{", "body"}}) {
        const auto request = parse_init_request(body);
        ASSERT_FALSE(request) << body;
        EXPECT_EQ(request.error().code, ErrorCode::invalid_argument);
        EXPECT_TRUE(request.error().message.starts_with(field)) << request.error().message;
    }
}

TEST(StateFiles, AreWrittenForOthersToRead) {
    const std::string dir = testing::TempDir() + "/state-" + random_id(8);
    Settings settings;
    settings.env = {{"A", "quote\" and \n"}};
    settings.generation = 7;
    ASSERT_TRUE(write_state_files(dir, settings));
    EXPECT_EQ(read_file(dir + "/generation"), "7");
    EXPECT_EQ(read_file(dir + "/envs.json"), R"({"A":"quote\" and \n"})");
    EXPECT_EQ(std::filesystem::status(dir + "/envs.json").permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    std::filesystem::remove_all(dir);
}

TEST(Metrics, FromProcFiles) {
    const auto before = parse_cpu_times("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3\n");
    const auto after = parse_cpu_times("cpu  150 0 50 850 50 0 0 0 0 0\n");
    ASSERT_TRUE(before && after);
    EXPECT_DOUBLE_EQ(cpu_used_percent(*before, *after), 50.0);
    EXPECT_DOUBLE_EQ(cpu_used_percent(*after, *before), 0.0);
    EXPECT_FALSE(parse_cpu_times("intr 5"));
    const MemoryUse use = parse_memory(
        "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 600 kB\nSwapCached: 9 kB\nCached: 300 kB\n");
    EXPECT_EQ(use.total, 1024000U);
    EXPECT_EQ(use.used, 409600U);
    EXPECT_EQ(use.cache, 307200U);
    EXPECT_TRUE(metrics_json(1.5));
}

TEST(PermissionText, AsGoPrintsIt) {
    EXPECT_EQ(permission_text(S_IFREG | 0644), "-rw-r--r--");
    EXPECT_EQ(permission_text(S_IFDIR | 0755), "drwxr-xr-x");
    EXPECT_EQ(permission_text(S_IFLNK | 0777), "Lrwxrwxrwx");
    EXPECT_EQ(permission_text(S_IFDIR | S_ISVTX | 0777), "dtrwxrwxrwx");
    EXPECT_EQ(permission_text(S_IFCHR | 0666), "Dcrw-rw-rw-");
    EXPECT_EQ(permission_text(S_IFREG | S_ISUID | 0755), "urwxr-xr-x");
}

// In memory a file can be from any time; what has no place in a message must not take the message along.
TEST(EntryInfo, FilesOfAnyTime) {
    const std::string path = "/dev/shm/entry-" + random_id(8);
    const UniqueFd file(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ASSERT_TRUE(file);
    UserCache users;
    for (const auto& [seconds, year] :
         {std::pair{1'000'000'000'000, "9999-"}, std::pair{-100'000'000'000, "0001-"}}) {
        const timespec times[2] = {{seconds, 5}, {seconds, 5}};
        ASSERT_EQ(::futimens(file.get(), times), 0);
        const auto info = entry_info(path, *users.get());
        ASSERT_TRUE(info);
        EXPECT_NE(encode_message(Encoding::json, *info).find(year), std::string::npos);
    }
    ::unlink(path.c_str());
}

// X21
TEST(Users, GroupsAreThoseOfALogin) {
    const std::string dir = testing::TempDir() + "/etc-" + random_id(8);
    ASSERT_TRUE(make_dirs(dir));
    ASSERT_TRUE(write_file_atomic(
        dir + "/passwd", "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n"));
    ASSERT_TRUE(write_file_atomic(dir + "/group",
                                  "root:x:0:\nsudo:x:27:other,user\nuser:x:1000:\ndocker:x:999:user\n"));
    UserCache cache(dir);
    const auto table = cache.get();
    const User* user = table->find("user");
    ASSERT_NE(user, nullptr);
    EXPECT_EQ(user->home, "/home/user");
    EXPECT_EQ(table->groups_of(*user), (std::vector<gid_t>{1000, 27, 999}));
    EXPECT_EQ(table->user_name(1000), "user");
    EXPECT_EQ(table->group_name(4711), "4711");
    EXPECT_EQ(table->find("nobody"), nullptr);
    EXPECT_EQ(cache.get(), table);  // unchanged files are not read again
    ASSERT_TRUE(write_file_atomic(dir + "/passwd", "new:x:5:5::/home/new:/bin/sh\n"));
    EXPECT_NE(cache.get()->find("new"), nullptr);
    EXPECT_NE(cache.get()->find("root"), nullptr);  // there is always a root
    std::filesystem::remove_all(dir);
}

TEST(Environment, RequestsWinOverGlobalsOverDefaults) {
    Settings settings;
    settings.env = {{"A", "global"}, {"B", "global"}, {"HOME", "/elsewhere"}};
    const User user{"user", 1000, 1000, "/home/user", "/bin/bash"};
    const Environment env = process_environment(settings, user, {{"B", "request"}});
    EXPECT_EQ(env.at("A"), "global");
    EXPECT_EQ(env.at("B"), "request");
    EXPECT_EQ(env.at("HOME"), "/elsewhere");
    EXPECT_EQ(env.at("USER"), "user");
    EXPECT_EQ(env.at("LOGNAME"), "user");
    EXPECT_EQ(env.at("SHELL"), "/bin/bash");
    EXPECT_EQ(env.at("PATH"), settings.search_path);
}

TEST(NetworkPlan, FromTheKernelCommandLine) {
    const auto plan = parse_network_plan("quiet glovebox.ip=10.11.0.2/30 glovebox.gw=10.11.0.1 x=y\n");
    ASSERT_TRUE(plan && *plan);
    EXPECT_EQ((*plan)->address, "10.11.0.2");
    EXPECT_EQ((*plan)->prefix, 30U);
    EXPECT_EQ((*plan)->gateway, "10.11.0.1");
    EXPECT_FALSE(*parse_network_plan("quiet"));
    EXPECT_FALSE(parse_network_plan("glovebox.ip=10.11.0.2/33"));
    EXPECT_FALSE(parse_network_plan("glovebox.ip=ten"));
    EXPECT_FALSE(parse_network_plan("glovebox.ip=10.11.0.2/30 glovebox.gw=x"));
}

TEST(Hosts, OneLineOfOurs) {
    const std::string once = with_host_line("127.0.0.1 localhost\n", "a");
    EXPECT_EQ(once, "127.0.0.1 localhost\n127.0.1.1 a # glovebox\n");
    EXPECT_EQ(with_host_line(once, "b"), "127.0.0.1 localhost\n127.0.1.1 b # glovebox\n");
    EXPECT_EQ(with_host_line(once, "a"), once);
    EXPECT_EQ(with_host_line("10.0.0.1 x", "a"), "10.0.0.1 x\n127.0.1.1 a # glovebox\n");
}

TEST(Devices, EverybodysAreOpenedAndNoOthers) {
    const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("devices-" + random_id(10));
    std::filesystem::create_directories(folder / "net");
    for (const char* name : {"fuse", "net/tun", "vda"}) ASSERT_TRUE(write_file_atomic(folder / name, "", 0600));
    open_devices(folder);
    const auto mode = [&](const char* name) {
        struct stat st{};
        return ::stat((folder / name).c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
    };
    EXPECT_EQ(mode("fuse"), 0666U);
    EXPECT_EQ(mode("net/tun"), 0666U);
    EXPECT_EQ(mode("vda"), 0600U);
    EXPECT_FALSE(std::filesystem::exists(folder / "vsock"));
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gb::agent
