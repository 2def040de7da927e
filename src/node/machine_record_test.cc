// SPDX-License-Identifier: Apache-2.0
#include "node/machine_record.h"

#include <sys/stat.h>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/ids.h"

namespace gb {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

MachineRecord sample() {
    MachineRecord r;
    r.id = "isandbox1";
    r.from.info = {"tid", "base", "b-1", 2, 512, 4096, 7};
    r.from.vmm_id = "vmm";
    r.from.env = {{"LANG", "C.UTF-8"}};
    r.process = {4711, 123'456'789};
    r.slot = 17;
    r.netns = 4'026'532'000;
    r.network.allow_internet_access = false;
    r.network.allow_out = {"8.8.8.8", "1.1.1.0/24"};
    r.network.deny_out = {"0.0.0.0/0"};
    return r;
}

// The sample with one change.
template <class F>
Result<MachineRecord> changed(F change) {
    json::object object = json::parse(write_record(sample())).as_object();
    change(object);
    return parse_record(json::serialize(object));
}

TEST(MachineRecord, SaysAgainWhatWasWritten) {
    for (std::optional<bool> internet :
         {std::optional<bool>(), std::optional<bool>(true), std::optional<bool>(false)}) {
        MachineRecord r = sample();
        r.network.allow_internet_access = internet;
        auto read = parse_record(write_record(r));
        ASSERT_TRUE(read) << read.error().message;
        EXPECT_EQ(read->id, r.id);
        EXPECT_EQ(read->process.pid, r.process.pid);
        EXPECT_EQ(read->process.start_ticks, r.process.start_ticks);
        EXPECT_EQ(read->slot, r.slot);
        EXPECT_EQ(read->netns, r.netns);
        EXPECT_EQ(read->network.allow_internet_access, internet);
        EXPECT_EQ(read->network.allow_out, r.network.allow_out);
        EXPECT_EQ(read->network.deny_out, r.network.deny_out);
        EXPECT_EQ(write_manifest(read->from), write_manifest(r.from));
    }
}

TEST(MachineRecord, TheGroupIsNamedAfterTheSandboxUnlessItSaysOtherwise) {
    EXPECT_EQ(parse_record(write_record(sample()))->cgroup_name(), "isandbox1")
        << "as earlier servers wrote it";
    EXPECT_THAT(write_record(sample()), testing::Not(testing::HasSubstr("cgroup")));
    MachineRecord r = sample();
    r.cgroup = "warm.abc";
    EXPECT_EQ(parse_record(write_record(r))->cgroup_name(), "warm.abc");
    for (const json::value& bad : std::initializer_list<json::value>{
             "", "../warm", "a/b", ".", "..", "a b", json::string(65, 'a'), 1, nullptr, json::array{}})
        EXPECT_FALSE(changed([&](json::object& o) { o["cgroup"] = bad; })) << json::serialize(bad);
}

TEST(MachineRecord, WhatIsDamagedIsRefused) {
    const std::string good = write_record(sample());
    for (std::size_t length = 0; length + 2 < good.size(); ++length)
        EXPECT_FALSE(parse_record(std::string_view(good).substr(0, length)).has_value()) << length;
    EXPECT_EQ(parse_record("[]").error().code, ErrorCode::data_loss);
    for (const char* name : {"format", "id", "pid", "start_ticks", "slot", "netns", "network", "template"}) {
        EXPECT_EQ(changed([&](json::object& o) { o.erase(name); }).error().code, ErrorCode::data_loss)
            << name;
        EXPECT_FALSE(changed([&](json::object& o) { o[name] = true; }).has_value()) << name;
        EXPECT_FALSE(changed([&](json::object& o) { o[name] = -1; }).has_value()) << name;
    }
    EXPECT_EQ(changed([](json::object& o) { o["format"] = 2; }).error().code, ErrorCode::failed_precondition);
    EXPECT_FALSE(changed([](json::object& o) { o["pid"] = std::int64_t{1} << 32; }).has_value());
}

TEST(MachineRecord, APolicyIsReadWholeOrNotAtAll) {
    auto network = [](auto change) {
        return changed([&](json::object& o) { change(o["network"].as_object()); });
    };
    for (const char* name : {"allow_internet_access", "allow_out", "deny_out"}) {
        EXPECT_FALSE(network([&](json::object& n) { n.erase(name); }).has_value()) << name;
        EXPECT_FALSE(network([&](json::object& n) { n[name] = "text"; }).has_value()) << name;
        EXPECT_FALSE(network([&](json::object& n) { n[name] = json::array{1}; }).has_value()) << name;
    }
    EXPECT_FALSE(network([](json::object& n) { n["later"] = json::object(); }).has_value())
        << "a rule of a later version";
    const json::value kDamaged[] = {1, "text", json::object{{"a.com", 1}},
                                    json::object{{"a.com", json::array{"A"}}},
                                    json::object{{"a.com", json::array{"A", 1}}}};
    for (const json::value& rules : kDamaged)
        EXPECT_FALSE(network([&](json::object& n) { n["rules"] = rules; }).has_value());
    for (const json::value& proxy :
         {json::value("a:1"), json::value(json::array{"a:1"}), json::value(json::array{1, 2})})
        EXPECT_FALSE(network([&](json::object& n) { n["egress_proxy"] = proxy; }).has_value());
}

TEST(MachineRecord, HasHeaderRulesAndNoPassword) {
    MachineRecord record = sample();
    record.network.rules = {
        {"api.example.com", {{"A", "b"}, {"Authorization", "Bearer ${e2b.secrets.key}"}}}};
    record.network.egress_proxy = net::ProxyRequest{"proxy.example:1080", "me", "hidden"};
    const std::string text = write_record(record);
    EXPECT_EQ(text.find("hidden"), std::string::npos);
    auto read = parse_record(text);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->network.rules, record.network.rules);
    ASSERT_TRUE(read->network.egress_proxy);
    EXPECT_EQ(*read->network.egress_proxy, (net::ProxyRequest{"proxy.example:1080", "me", ""}));
}

TEST(MachineRecord, IsAFileOfRootsThatAppearsWhole) {
    const fs::path folder = fs::temp_directory_path() / ("glovebox-record-" + random_id(8));
    const fs::path file = folder / "machine.json";
    ASSERT_TRUE(make_dirs(folder));
    EXPECT_TRUE(remove_record(file));
    EXPECT_EQ(put_record(folder / "none" / "machine.json", sample()).error().code, ErrorCode::not_found);
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(put_record(file, sample()));
        EXPECT_EQ(*read_file(file), write_record(sample()));
        EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
        struct stat st{};
        ASSERT_EQ(::stat(file.c_str(), &st), 0);
        EXPECT_EQ(st.st_mode & 07777, 0600U);
    }
    EXPECT_TRUE(remove_record(file));
    EXPECT_FALSE(fs::exists(file));
    fs::remove_all(folder);
}

}  // namespace
}  // namespace gb
