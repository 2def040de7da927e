// SPDX-License-Identifier: Apache-2.0
// Sandboxes from the warm pool are like any other. Needs what local_node_test.cc needs.
#include <fstream>
#include <set>

#include <boost/json.hpp>
#include <fmt/ranges.h>

#include "http/client.h"
#include "node/live_fixture.h"
#include "node/machine_record.h"
#include "node/paused_sandbox.h"

namespace gb::live {
namespace {

class WarmTest : public RestartTest {
  protected:
    void SetUp() override {
        RestartTest::SetUp();
        warm_.templates["base"] = {2, 2};
    }
    void open(WarmLimits limits) {
        warm_.templates["base"] = limits;
        server_ = std::make_unique<Server>(data_, warm_);
        ASSERT_TRUE(server_->opened()) << server_->error.message;
    }
    void TearDown() override {
        server_.reset();
        RestartTest::TearDown();
    }
    [[nodiscard]] std::size_t waiting() const { return server_->node().info()->warm["base"]; }
    void wait_for_warm(std::size_t count) {
        (void)test::eventually([&] { return waiting() >= count; });
        ASSERT_EQ(waiting(), count);
    }
    static SandboxSpec spec_of(const std::string& id) {
        SandboxSpec out;
        out.id = id;
        out.template_id = "base";
        return out;
    }
    static std::string new_id() { return "i" + random_id(19); }
    Status create(const SandboxSpec& spec) { return server_->run(server_->node().create(spec)); }
    MachineRecord record(const std::string& id) const {
        auto text = read_file(SandboxFolder(data_ / "sandboxes" / id).machine());
        auto record = text ? parse_record(*text) : Result<MachineRecord>(std::unexpected(text.error()));
        EXPECT_TRUE(record.has_value()) << id;
        return record.value_or(MachineRecord{});
    }
    // What a command prints in a guest without a token.
    std::string says(const std::string& id, const std::string& command) {
        pid_ = record(id).process.pid;
        return guest(command).out;
    }
    // The status of a request to the agent as a client makes it.
    int asks(const std::string& id, const std::string& token) {
        return server_->run(
            [](LocalNode& node, std::string name, std::string secret) -> asio::awaitable<int> {
                auto socket = co_await node.connect(name, kAgentPort);
                if (!socket) co_return -1;
                http::ClientConnection connection(std::move(*socket));
                http::RequestHead head{"GET", "/envs", {{"Host", "guest"}}};
                if (!secret.empty()) head.headers.add("X-Access-Token", secret);
                auto answer = co_await connection.request(std::move(head), {}, 1 << 20);
                co_return answer ? answer->head.status : -1;
            }(server_->node(), id, token));
    }
    // The pids of machines that wait.
    [[nodiscard]] std::vector<pid_t> warm_pids() const {
        std::vector<pid_t> out;
        for (const pid_t pid : engine::find_stray_vmms(data_ / "vmm")) {
            std::ifstream in(fmt::format("/proc/{}/mountinfo", pid));
            const std::string text(std::istreambuf_iterator<char>(in), {});
            if (text.contains("/sandboxes/warm.")) out.push_back(pid);
        }
        return out;
    }

    std::unique_ptr<Server> server_;
};

// Of processes, environment, files and users, without the name.
constexpr const char* kWhatIsThere =
    "ps --ppid 2 -p 2 -N -o user,args --no-headers | grep -v 'ps --ppid' | sort; env | grep -v "
    "E2B_SANDBOX_ID= | sort; "
    "ls -lA --time-style=+ /tmp /var/tmp /home/user /dev/shm; ls -A / /run/glovebox; sed s/$HOSTNAME/NAME/ "
    "/etc/hosts; "
    "whoami; pwd; id; find /etc /home /root /tmp /var /usr/local -xdev -newer /.e2b -type f 2>/dev/null | "
    "sort";

TEST_F(WarmTest, ItHasAnIdentityOfItsOwnAndNothingOfBefore) {
    const std::int64_t opened_ms = monotonic_ms();
    ASSERT_NO_FATAL_FAILURE(open({2, 2}));
    ASSERT_NO_FATAL_FAILURE(wait_for_warm(2));
    const std::int64_t ready_ms = monotonic_ms();
    EXPECT_THAT(server_->held(), IsEmpty()) << "they are nobody's";
    EXPECT_THAT(groups(), testing::Each(testing::StartsWith("warm.")));
    std::this_thread::sleep_for(3s);

    const std::string a = new_id(), b = new_id(), restored = new_id();
    const std::int64_t asked_ms = monotonic_ms();
    ASSERT_OK(create(spec_of(a)));
    const double a_uptime = std::stod(says(a, "cat /proc/uptime"));
    const std::int64_t a_ms = monotonic_ms();
    ASSERT_OK(create(spec_of(b)));
    EXPECT_EQ(server_->node().info()->creates_from_pool, 2U);
    const std::vector<std::string> cgroups = groups();
    EXPECT_THAT(cgroups, Contains(record(a).cgroup_name()));
    EXPECT_THAT(record(a).cgroup_name(), testing::StartsWith("warm."));
    server_->stop(true);
    server_.reset();
    ASSERT_NO_FATAL_FAILURE(open({0, 0}));
    std::vector<std::string> both{a + "+", b + "+"}, held = server_->held();
    std::ranges::sort(both);
    std::ranges::sort(held);
    EXPECT_EQ(held, both) << "taken over by another server";
    ASSERT_OK(create(spec_of(restored)));
    EXPECT_EQ(server_->node().info()->creates_from_restore, 1U);
    // It stood still while it waited: the guest has run no longer than the host's clock says it could.
    const double restored_uptime = std::stod(says(restored, "cat /proc/uptime"));
    EXPECT_LE(a_uptime - restored_uptime,
              static_cast<double>((ready_ms - opened_ms) + (a_ms - asked_ms)) / 1000);

    for (const std::string& id : {a, b}) {
        EXPECT_EQ(says(id, "hostname"), id + "\n");
        EXPECT_EQ(says(id, "echo $E2B_SANDBOX_ID"), id + "\n");
        EXPECT_EQ(says(id, "getent hosts $HOSTNAME | wc -l"), "1\n");
        const std::int64_t before = now_ms() / 1000;
        const std::int64_t guest_time = std::stoll(says(id, "date +%s"));
        EXPECT_GE(guest_time, before - 1);
        EXPECT_LE(guest_time, now_ms() / 1000 + 1);
        EXPECT_EQ(says(id, kWhatIsThere), says(restored, kWhatIsThere));
        EXPECT_GT(std::stoi(says(id, "cat /run/glovebox/generation")),
                  std::stoi(says(restored, "cat /run/glovebox/generation")));
    }
    std::set<std::string> numbers;
    for (const std::string& id : {a, b, restored}) {
        numbers.insert(says(id, "head -c 16 /dev/urandom | od -An -tx1"));
        numbers.insert(says(id, "cat /proc/sys/kernel/random/uuid"));
    }
    EXPECT_EQ(numbers.size(), 6U);
    for (const std::string& id : {a, b}) ASSERT_OK(server_->run(server_->node().destroy(id)));
    EXPECT_EQ(groups(), std::vector<std::string>{restored});
    EXPECT_FALSE(fs::exists(data_ / "sandboxes" / a));
}

TEST_F(WarmTest, ItsTokenEnvironmentAndLogAreItsOwn) {
    ASSERT_NO_FATAL_FAILURE(open({2, 2}));
    ASSERT_NO_FATAL_FAILURE(wait_for_warm(2));
    SandboxSpec a = spec_of(new_id()), b = spec_of(new_id());
    a.access_token = "token-a";
    b.access_token = "token-b";
    a.env_vars = {{"MINE", "1"}};
    ASSERT_OK(create(a));
    ASSERT_OK(create(b));
    EXPECT_EQ(server_->node().info()->creates_from_pool, 2U);
    EXPECT_EQ(asks(a.id, "token-a"), 200);
    EXPECT_EQ(asks(b.id, "token-b"), 200);
    for (const SandboxSpec* spec : {&a, &b}) {
        EXPECT_EQ(asks(spec->id, ""), 401);
        EXPECT_EQ(asks(spec->id, spec == &a ? "token-b" : "token-a"), 401);
        auto telemetry = server_->run(server_->node().telemetry(spec->id, 0));
        ASSERT_OK(telemetry);
        ASSERT_EQ(telemetry->entries.size(), 1U) << "nothing of the exercise";
        EXPECT_EQ(telemetry->entries[0].sequence, 1U);
        EXPECT_EQ(telemetry->entries[0].message, "identity taken");
        EXPECT_GT(telemetry->entries[0].time_ms, now_ms() - 60'000);
    }
}

// The default template of the code interpreter, when it is there.
class WarmKernelTest : public WarmTest {
  protected:
    void SetUp() override {
        WarmTest::SetUp();
        if (!IsSkipped() && !TemplateStore(templates_folder()).find(kTemplate))
            GTEST_SKIP() << "no template " << kTemplate;
    }
    // What a cell prints.
    std::string cell(const std::string& id, const std::string& code) {
        const AgentClient guest = agent_of(record(id).process.pid);
        auto answer = guest.request(49999, "POST", "/execute",
                                    boost::json::serialize(boost::json::object{{"code", code}}), 60s);
        EXPECT_TRUE(answer.has_value()) << answer.error().message;
        std::string out;
        std::istringstream lines(answer.value_or(""));
        for (std::string line; std::getline(lines, line);) {
            const boost::json::object event = boost::json::parse(line).as_object();
            if (event.at("type") == "stdout") out += std::string_view(event.at("text").as_string());
            EXPECT_NE(event.at("type"), "error") << line;
        }
        return out;
    }
    // All that a cell of JavaScript answers.
    std::string javascript_cell(const std::string& id) {
        const AgentClient guest = agent_of(record(id).process.pid);
        return guest.request(49999, "POST", "/execute", R"({"code":"1 + 1","language":"javascript"})", 60s)
            .value_or("");
    }
    std::string contexts(const std::string& id) {
        const AgentClient guest = agent_of(record(id).process.pid);
        return guest.request(49999, "GET", "/contexts", "", 60s).value_or("");
    }
    static constexpr const char* kTemplate = "code-interpreter-v1";
};

TEST_F(WarmKernelTest, TheKernelHasNoMemoryOfTheExercise) {
    warm_.templates[kTemplate] = {2, 2};
    server_ = std::make_unique<Server>(data_, warm_);
    ASSERT_TRUE(server_->opened()) << server_->error.message;
    ASSERT_TRUE(test::eventually([&] { return server_->node().info()->warm[kTemplate] >= 2; }));
    const std::vector<std::string> ids{new_id(), new_id(), new_id()};
    for (const std::string& id : ids) {
        SandboxSpec spec = spec_of(id);
        spec.template_id = kTemplate;
        ASSERT_OK(create(spec));
    }
    ASSERT_EQ(server_->node().info()->creates_from_pool, 2U) << "and one restored";
    const char* what_is_there =
        "print(get_ipython().execution_count, list(In), dict(Out), sorted(globals()), repr(_), repr(__), "
        "_ih, _oh)\n"
        "print(list(get_ipython().history_manager.get_range(output=True)))\n"
        "import os, sys, threading\n"
        "print(sorted((n, v) for n, v in os.environ.items() if n != 'E2B_SANDBOX_ID'))\n"
        "print(os.getcwd(), sorted(sys.modules), threading.active_count())";
    std::set<std::string> numbers;
    std::set<std::string> answers;
    for (const std::string& id : ids) {
        answers.insert(cell(id, what_is_there));
        EXPECT_THAT(*answers.begin(), testing::StartsWith("1 ['', "));
        EXPECT_EQ(cell(id, "print(os.environ['E2B_SANDBOX_ID'])"), id + "\n");
        numbers.insert(cell(id, "import random, numpy; print(random.random(), numpy.random.rand())"));
        EXPECT_EQ(boost::json::parse(contexts(id)).as_array().size(), 2U);  // Python and JavaScript
        EXPECT_THAT(javascript_cell(id), testing::HasSubstr("\"execution_count\":1}"));
    }
    EXPECT_EQ(answers.size(), 1U) << fmt::format("{}", fmt::join(answers, "\n"));
    EXPECT_EQ(numbers.size(), 3U);
}

TEST_F(WarmTest, ItsPolicyIsTheOneThatWasAskedFor) {
    ASSERT_NO_FATAL_FAILURE(open({2, 2}));
    ASSERT_NO_FATAL_FAILURE(wait_for_warm(2));
    SandboxSpec closed = spec_of(new_id()), open = spec_of(new_id());
    closed.network.allow_internet_access = false;
    open.network.deny_out = {"8.8.8.0/24"};
    ASSERT_OK(create(closed));
    ASSERT_OK(create(open));
    EXPECT_EQ(server_->node().info()->creates_from_pool, 2U);
    const char* denied_one = "timeout 5 bash -c 'exec 3<>/dev/tcp/8.8.8.8/443' 2>&1";
    const char* other_one = "timeout 1 bash -c 'exec 3<>/dev/tcp/9.9.9.9/443' 2>&1";
    EXPECT_THAT(says(closed.id, denied_one), HasSubstr("refused"));
    EXPECT_THAT(says(closed.id, other_one), HasSubstr("refused"));
    EXPECT_THAT(says(open.id, denied_one), HasSubstr("refused"));
    (void)says(open.id, other_one);  // whatever the world answers
    const std::vector<std::string> of_closed = decisions(*server_, closed.id, {"9.9.9.9", "deny"});
    EXPECT_THAT(of_closed, Contains(testing::AllOf(HasSubstr("9.9.9.9"), HasSubstr(R"("verdict":"deny")"))));
    EXPECT_THAT(of_closed, Not(Contains(HasSubstr(R"("verdict":"allow")"))));
    const std::vector<std::string> of_open = decisions(*server_, open.id, {"9.9.9.9", "allow"});
    EXPECT_THAT(of_open, Contains(testing::AllOf(HasSubstr("9.9.9.9"), HasSubstr(R"("verdict":"allow")"))));
    EXPECT_THAT(of_open, Contains(testing::AllOf(HasSubstr("8.8.8.8"), HasSubstr("deny 8.8.8.0/24"))));
    // It is paused and resumed like any other.
    EXPECT_EQ(says(open.id, "echo in memory > /dev/shm/kept"), "");
    ASSERT_OK(server_->run(server_->node().pause(open.id, PauseMode::with_memory)));
    ASSERT_OK(server_->run(server_->node().resume(open)));
    EXPECT_EQ(says(open.id, "cat /dev/shm/kept; hostname"), "in memory\n" + open.id + "\n");
    EXPECT_EQ(record(open.id).cgroup_name(), open.id);
}

TEST_F(WarmTest, ItOutlivesAServerThatIsKilledAndThoseThatWaitedDoNot) {
    ASSERT_NO_FATAL_FAILURE(in_killed_server([&](Server& server) -> Status {
        (void)test::eventually([&] { return server.node().info()->warm["base"] >= 2; });
        GB_TRY(server.run(server.node().create(spec())));
        if (server.node().info()->creates_from_pool != 1)
            return fail(ErrorCode::internal, "not from the pool");
        (void)test::eventually([&] { return server.node().info()->warm["base"] >= 2; });
        return {};
    }));
    EXPECT_EQ(engine::find_stray_vmms(data_ / "vmm").size(), 3U);
    pid_ = record(id_).process.pid;
    EXPECT_EQ(guest("echo in memory > /dev/shm/kept").exit_code, 0);
    ASSERT_NO_FATAL_FAILURE(open({0, 0}));
    EXPECT_EQ(server_->held(), std::vector<std::string>{id_ + "+"});
    EXPECT_EQ(guest("cat /dev/shm/kept").out, "in memory\n");
    EXPECT_THAT(denied(), HasSubstr("refused"));
    // They are ended while the server is there already.
    EXPECT_TRUE(test::eventually([&] { return engine::find_stray_vmms(data_ / "vmm") == std::vector<pid_t>{pid_}; }));
    EXPECT_TRUE(test::eventually([&] { return std::distance(fs::directory_iterator(data_ / "sandboxes"), {}) == 1; }));
    ASSERT_OK(server_->run(server_->node().destroy(id_)));
    EXPECT_THAT(groups(), IsEmpty());
}

TEST_F(WarmTest, AServerThatLeavesEndsThoseThatWait) {
    ASSERT_NO_FATAL_FAILURE(open({2, 2}));
    ASSERT_NO_FATAL_FAILURE(wait_for_warm(2));
    server_->stop(true);
    server_.reset();
    EXPECT_THAT(engine::find_stray_vmms(data_ / "vmm"), IsEmpty());
    EXPECT_THAT(groups(), IsEmpty());
    EXPECT_TRUE(fs::is_empty(data_ / "sandboxes"));
}

TEST_F(WarmTest, OneThatDiedOrHangsIsReplacedByAnOrdinaryOne) {
    ASSERT_NO_FATAL_FAILURE(open({2, 2}));
    ASSERT_NO_FATAL_FAILURE(wait_for_warm(2));
    const std::vector<pid_t> pids = warm_pids();
    ASSERT_EQ(pids.size(), 2U);
    ::kill(pids[0], SIGKILL);
    ::kill(pids[1], SIGKILL);
    const std::string first = new_id();
    ASSERT_OK(create(spec_of(first)));
    EXPECT_EQ(says(first, "hostname"), first + "\n");
    EXPECT_EQ(server_->node().info()->creates_from_pool, 0U);
    ASSERT_NO_FATAL_FAILURE(wait_for_warm(2));  // after its back-off

    // Its folder cannot have the sandbox's name.
    const std::string second = new_id();
    ASSERT_OK(make_dirs(data_ / "sandboxes" / second / "in the way"));
    ASSERT_OK(create(spec_of(second)));
    EXPECT_EQ(says(second, "hostname"), second + "\n");
    EXPECT_EQ(server_->node().info()->creates_from_pool, 0U);
    EXPECT_EQ(record(second).cgroup_name(), second);

    // A VMM that does not answer any more.
    ASSERT_NO_FATAL_FAILURE(wait_for_warm(2));
    for (const pid_t pid : warm_pids()) ::kill(pid, SIGSTOP);
    const std::string third = new_id();
    ASSERT_OK(create(spec_of(third)));
    EXPECT_EQ(says(third, "hostname"), third + "\n");
    EXPECT_EQ(server_->node().info()->creates_from_pool, 0U);
    EXPECT_EQ(server_->node().info()->creates_from_restore, 3U);
}

TEST_F(WarmTest, TwentyAtOnceAreAllDifferent) {
    ASSERT_NO_FATAL_FAILURE(open({4, 4}));
    ASSERT_NO_FATAL_FAILURE(wait_for_warm(4));
    std::vector<std::string> ids;
    std::vector<std::future<Status>> creates;
    for (int i = 0; i < 20; ++i) {
        ids.push_back(new_id());
        creates.push_back(server_->begin(server_->node().create(spec_of(ids.back()))));
    }
    for (auto& create : creates) ASSERT_OK(create.get());
    EXPECT_EQ(server_->node().info()->creates_from_pool, 4U);
    EXPECT_EQ(server_->node().info()->creates_from_restore, 16U);
    std::set<std::string> numbers;
    for (const std::string& id : ids) {
        EXPECT_EQ(says(id, "hostname"), id + "\n");
        numbers.insert(says(id, "cat /proc/sys/kernel/random/uuid"));
    }
    EXPECT_EQ(numbers.size(), 20U);
    EXPECT_EQ(server_->held().size(), 20U);
}

}  // namespace
}  // namespace gb::live
