// SPDX-License-Identifier: Apache-2.0
// Routes, access and /init of a running agent; and its view of folders.
#include <filesystem>

#include "base/clock.h"
#include "base/file.h"
#include "base/file_signature.h"
#include "guest/agent/agent_test_support.h"

namespace gb::agent {
namespace {

constexpr std::string_view kUnauthorized =
    R"({"code":401,"message":"unauthorized access, please provide a valid access token or method signing if supported"})";

TEST(Agent, HealthMetricsEnvs) {
    const TestAgent agent;
    TestClient client(agent);
    EXPECT_EQ(client.send("GET", "/health").head.status, 204);
    const auto metrics = client.send("GET", "/metrics");
    EXPECT_EQ(metrics.head.status, 200);
    for (const char* key : {"ts", "cpu_count", "cpu_used_pct", "mem_total", "mem_used", "mem_cache",
                            "mem_total_mib", "mem_used_mib", "disk_used", "disk_total"})
        EXPECT_NE(metrics.body.find("\"" + std::string(key) + "\":"), std::string::npos) << key;
    EXPECT_EQ(client.send("GET", "/envs").body, R"({"E2B_SANDBOX":"true"})");
    EXPECT_EQ(client.send("GET", "/nothing").head.status, 404);
    for (const char* path : {"/freeze", "/thaw", "/hold", "/release", "/trust"})
        EXPECT_EQ(client.send("POST", path).head.status, 404) << "only of an agent whose machine it is";
}

TEST(Agent, Cors) {
    const TestAgent agent([](AgentOptions& options) { options.settings.access_token = "secret"; });
    TestClient client(agent);
    const auto preflight = client.send("OPTIONS", "/process.Process/Start",
                                       {{"Origin", "https://x"}, {"Access-Control-Request-Headers", "x-a"}});
    EXPECT_EQ(preflight.head.status, 204);
    EXPECT_EQ(preflight.head.headers.get("Access-Control-Allow-Headers"), "x-a");
    EXPECT_EQ(preflight.head.headers.get("Access-Control-Max-Age"), "7200");
    const auto answer = client.send("GET", "/health", {{"Origin", "https://x"}});
    EXPECT_EQ(answer.head.headers.get("Access-Control-Allow-Origin"), "*");
}

TEST(Agent, AnEmptyBodyIsNotCompressed) {
    const TestAgent agent;
    TestClient client(agent);
    const auto answer = client.send("POST", "/process.Process/List",
                                    {{"Content-Type", "application/json"}, {"Content-Encoding", "gzip"}});
    EXPECT_EQ(answer.head.status, 200) << answer.body;
}

TEST(Agent, AMessageThatIsTooLongIsRefusedAndNotCut) {
    const TestAgent agent;
    TestClient client(agent);
    const std::string body((std::size_t{70} << 20), ' ');
    const auto unary =
        client.send("POST", "/process.Process/List", {{"Content-Type", "application/json"}}, body);
    EXPECT_EQ(unary.head.status, 413) << unary.body;
    const auto stream =
        client.send("POST", "/process.Process/Start", {{"Content-Type", "application/connect+json"}},
                    std::string("\0\4\0\0\0", 5) + body);
    EXPECT_EQ(stream.head.status, 200);
    EXPECT_NE(stream.body.find("\"error\""), std::string::npos);
}

TEST(Agent, TokenOnceSetIsNeeded) {
    const TestAgent agent;
    TestClient client(agent);
    EXPECT_EQ(client.send("GET", "/envs").head.status, 200);
    EXPECT_EQ(client.send("POST", "/init", {}, R"({"accessToken":"secret"})").head.status, 204);
    EXPECT_EQ(client.send("GET", "/health").head.status, 204);
    for (const char* path : {"/envs", "/metrics", "/files?path=/etc/passwd&x=1"}) {
        const auto refused = client.send("GET", path, {{"X-Access-Token", "wrong"}});
        EXPECT_EQ(refused.head.status, 401);
        EXPECT_EQ(refused.body, kUnauthorized);
    }
    EXPECT_EQ(client.send("GET", "/envs").body, kUnauthorized);
    EXPECT_EQ(client.send("POST", "/process.Process/List", {{"Content-Type", "application/json"}}, "{}")
                  .head.status,
              401);
    EXPECT_EQ(client.send("POST", "/files/compose", {}, "{}").head.status, 401);
    EXPECT_EQ(client.send("GET", "/envs", {{"X-Access-Token", "secret"}}).head.status, 200);
}

TEST(Agent, SignedUrls) {
    const TestAgent agent([](AgentOptions& options) { options.settings.access_token = "secret"; });
    const TestFolder folder;
    TestClient client(agent);
    const auto signed_url = [&](FileOperation operation, std::optional<std::int64_t> until) {
        const std::string path = folder.path("a b+c");
        std::string url = "/files?path=" + http::percent_encode(path) + "&signature=" +
                          http::percent_encode(sign_url(path, operation, "", "secret", until));
        if (until) url += "&signature_expiration=" + std::to_string(*until);
        return url;
    };
    const http::Headers raw{{"Content-Type", "application/octet-stream"}};
    const std::int64_t now = now_ms() / 1000;
    EXPECT_EQ(client.send("POST", signed_url(FileOperation::write, {}), raw, "x").head.status, 200);
    EXPECT_EQ(client.send("GET", signed_url(FileOperation::read, now + 60)).body, "x");
    EXPECT_EQ(client.send("GET", signed_url(FileOperation::read, now - 60)).body,
              R"({"code":401,"message":"signature is already expired"})");
    EXPECT_EQ(client.send("GET", signed_url(FileOperation::write, {})).body,
              R"({"code":401,"message":"invalid signature"})");
    EXPECT_EQ(client.send("GET", "/files?path=/etc/passwd").body,
              R"({"code":401,"message":"missing signature query parameter"})");
}

TEST(Agent, InitOnlyFromTheControlPlane) {
    const TestAgent agent([](AgentOptions& options) {
        options.allow_local_init = false;
        options.control_peer = asio::ip::make_address("10.11.0.1");
    });
    TestClient client(agent);
    EXPECT_EQ(client.send("POST", "/init", {}, R"({"accessToken":"x"})").head.status, 403);
    EXPECT_EQ(client.send("GET", "/envs").head.status, 200);
    const TestAgent chosen([](AgentOptions& options) {
        options.allow_local_init = false;
        options.control_peer = asio::ip::make_address("127.0.0.1");
    });
    EXPECT_EQ(TestClient(chosen).send("POST", "/init").head.status, 204);
}

TEST(Agent, X25_InitReplacesTheEnvironmentEverywhere) {
    const TestFolder folder;
    const TestAgent agent([&](AgentOptions& options) { options.state_dir = folder.path("state"); });
    TestClient client(agent);
    ASSERT_EQ(
        client.send("POST", "/init", {}, R"({"envVars":{"A":"1","B":"2"},"sandboxID":"i5","templateID":"t"})")
            .head.status,
        204);
    ::process::StartRequest request = shell("echo [$A][$B][$E2B_SANDBOX_ID][$E2B_TEMPLATE_ID][$E2B_SANDBOX]");
    EXPECT_EQ(start(agent, request).drain().out, "[1][2][i5][t][true]\n");
    EXPECT_EQ(read_file(folder.path("state/generation")), "1");
    ASSERT_EQ(client.send("POST", "/init", {}, R"({"envVars":{"B":"3"},"unknown":[1]})").head.status, 204);
    EXPECT_EQ(start(agent, request).drain().out, "[][3][i5][t][true]\n");
    request.mutable_pty()->mutable_size()->set_cols(80);
    EXPECT_EQ(start(agent, request).drain().terminal, "[][3][i5][t][true]\r\n");
    EXPECT_EQ(client.send("GET", "/envs").body, *read_file(folder.path("state/envs.json")));
    EXPECT_EQ(read_file(folder.path("state/generation")), "2");
    const auto bad = client.send("POST", "/init", {}, R"({"timestamp":"yesterday"})");
    EXPECT_EQ(bad.head.status, 400);
    EXPECT_EQ(bad.body, R"({"code":400,"message":"timestamp: not an RFC 3339 time"})");
    EXPECT_EQ(read_file(folder.path("state/generation")), "2");
}

std::string trust_body(std::string_view certificate, std::string_view more = {}) {
    return R"({"caBundle":"-----BEGIN CERTIFICATE-----\n)" + std::string(certificate) +
           R"(\n-----END CERTIFICATE-----\n","caHash":"0123abcd")" + std::string(more) + "}";
}

TEST(Agent, AnAuthorityIsTrustedByWhatIsStartedThenAndNoLongerWhenItGoes) {
    const TestFolder folder;
    const TestAgent agent([&](AgentOptions& options) {
        options.state_dir = folder.path("state");
        options.trust_root = folder.path("root");
    });
    std::filesystem::create_directories(folder.path("root/etc/ssl/certs"));
    const std::string bundle = folder.path("root/etc/ssl/certs/ca-certificates.crt");
    ASSERT_TRUE(write_file_atomic(bundle, "public\n"));
    TestClient client(agent);
    const ::process::StartRequest request = shell("echo [$CURL_CA_BUNDLE][$AWS_CA_BUNDLE]");
    const auto holds = [&](std::string_view certificate) {
        return read_file(bundle)->find("\n" + std::string(certificate) + "\n") != std::string::npos;
    };
    const std::string init = trust_body("MAAA", R"(,"envVars":{"CURL_CA_BUNDLE":"mine"})");
    ASSERT_EQ(client.send("POST", "/init", {}, init).head.status, 204);
    EXPECT_EQ(start(agent, request).drain().out, "[mine][/etc/ssl/certs/ca-certificates.crt]\n");
    EXPECT_TRUE(holds("MAAA"));
    EXPECT_EQ(client.send("GET", "/envs").body, *read_file(folder.path("state/envs.json")));
    // Of a server that knows nothing of it.
    ASSERT_EQ(client.send("POST", "/init", {}, R"({"envVars":{}})").head.status, 204);
    EXPECT_TRUE(holds("MAAA"));

    ASSERT_EQ(client.send("POST", "/trust", {}, trust_body("MBBB")).head.status, 204);
    EXPECT_TRUE(holds("MBBB"));
    EXPECT_FALSE(holds("MAAA"));
    EXPECT_NE(read_file(folder.path("state/envs.json"))->find("NODE_EXTRA_CA_CERTS"), std::string::npos);
    EXPECT_EQ(read_file(folder.path("state/generation")), "2") << "it is the same sandbox still";
    ASSERT_EQ(client.send("POST", "/trust", {}, R"({"caBundle":"","caHash":""})").head.status, 204);
    EXPECT_EQ(start(agent, request).drain().out, "[][]\n");
    EXPECT_EQ(read_file(bundle), "public\n");
    EXPECT_EQ(read_file(folder.path("state/envs.json")), R"({"E2B_SANDBOX":"true"})");

    ASSERT_EQ(client.send("POST", "/trust", {}, trust_body("MCCC")).head.status, 204);
    ASSERT_EQ(client.send("POST", "/init", {}, R"({"caBundle":"","caHash":""})").head.status, 204);
    EXPECT_EQ(read_file(bundle), "public\n");
    for (const char* body : {"", "{}", R"({"caBundle":"x"})"})
        EXPECT_EQ(client.send("POST", "/trust", {}, body).head.status, 400) << body;
    EXPECT_EQ(client.send("GET", "/trust").head.status, 404);
}

TEST(Agent, AGuestThatCannotTrustIsASandboxStill) {
    const TestFolder folder;
    const TestAgent agent([&](AgentOptions& options) { options.trust_root = folder.path("root"); });
    std::filesystem::create_directories(folder.path("root/etc/ssl/certs/ca-certificates.crt"));
    TestClient client(agent);
    EXPECT_EQ(client.send("POST", "/init", {}, trust_body("MAAA")).head.status, 204);
    EXPECT_EQ(start(agent, shell("echo [$CURL_CA_BUNDLE]")).drain().out, "[]\n") << "a bundle that is none";
    EXPECT_NE(client.send("GET", "/telemetry").body.find("authority could not be set"), std::string::npos);
    const auto refused = client.send("POST", "/trust", {}, trust_body("MAAA"));
    EXPECT_EQ(refused.head.status, 409);
    EXPECT_NE(refused.body.find("is not a file"), std::string::npos) << refused.body;
}

TEST(Agent, TrustIsForTheControlPlaneAlone) {
    const TestFolder folder;
    const TestAgent agent([&](AgentOptions& options) {
        options.allow_local_init = false;
        options.control_peer = asio::ip::make_address("10.11.0.1");
        options.trust_root = folder.path("root");
    });
    TestClient client(agent);
    EXPECT_EQ(client.send("POST", "/trust", {}, trust_body("MAAA")).head.status, 403);
    EXPECT_FALSE(std::filesystem::exists(folder.path("root")));
}

class Filesystem : public testing::Test {
  protected:
    template <class Answer>
    std::pair<Answer, int> call(const std::string& method, const google::protobuf::Message& request) {
        auto [answer, response] =
            TestClient(agent_).call<Answer>("/filesystem.Filesystem/" + method, request);
        last_body_ = response.body;
        return {std::move(answer), response.head.status};
    }
    int make_dir(const std::string& path) {
        filesystem::MakeDirRequest request;
        request.set_path(path);
        return call<filesystem::MakeDirResponse>("MakeDir", request).second;
    }
    std::vector<std::string> list(const std::string& path, std::uint32_t depth) {
        filesystem::ListDirRequest request;
        request.set_path(path);
        request.set_depth(depth);
        std::vector<std::string> out;
        const auto [answer, status] = call<filesystem::ListDirResponse>("ListDir", request);
        if (status != 200) return {std::to_string(status)};
        for (const auto& entry : answer.entries()) out.push_back(entry.path().substr(path.size() + 1));
        return out;
    }
    std::pair<filesystem::EntryInfo, int> stat(const std::string& path) {
        filesystem::StatRequest request;
        request.set_path(path);
        auto [answer, status] = call<filesystem::StatResponse>("Stat", request);
        return {answer.entry(), status};
    }
    int remove(const std::string& path) {
        filesystem::RemoveRequest request;
        request.set_path(path);
        return call<filesystem::RemoveResponse>("Remove", request).second;
    }
    int move(const std::string& from, const std::string& to) {
        filesystem::MoveRequest request;
        request.set_source(from);
        request.set_destination(to);
        return call<filesystem::MoveResponse>("Move", request).second;
    }

    TestAgent agent_;
    TestFolder folder_;
    std::string last_body_;
};

TEST_F(Filesystem, MakeAndList) {
    EXPECT_EQ(make_dir(folder_.path("b/deep/er")), 200);
    EXPECT_EQ(make_dir(folder_.path("b")), 409);
    EXPECT_EQ(make_dir(folder_.path("a")), 200);
    EXPECT_EQ(make_dir("/tmp"), 409);  // F13
    ASSERT_TRUE(write_file_atomic(folder_.path("a.txt"), "x"));
    ASSERT_TRUE(write_file_atomic(folder_.path("a/.hid"), "x"));
    std::filesystem::create_directory_symlink(folder_.path("b"), folder_.path("link"));
    EXPECT_EQ(make_dir(folder_.path("a.txt")), 400);
    EXPECT_EQ(make_dir(folder_.path("a.txt/x")), 400);
    EXPECT_EQ(list(folder_.path(), 0), (std::vector<std::string>{"a", "a.txt", "b", "link"}));
    EXPECT_EQ(list(folder_.path(), 3),
              (std::vector<std::string>{"a", "a/.hid", "a.txt", "b", "b/deep", "b/deep/er", "link"}));
    EXPECT_EQ(list(folder_.path("link"), 1),
              (std::vector<std::string>{"deep"}));  // by the name that was asked for
    EXPECT_EQ(list(folder_.path("none"), 1), std::vector<std::string>{"404"});
    EXPECT_EQ(list(folder_.path("a.txt"), 1), std::vector<std::string>{"400"});
}

TEST_F(Filesystem, StatOfFilesAndLinks) {
    ASSERT_TRUE(write_file_atomic(folder_.path("f"), "four", 0640));
    std::filesystem::create_symlink("f", folder_.path("link"));
    std::filesystem::create_symlink("nowhere", folder_.path("broken"));
    const auto file = stat(folder_.path("f")).first;
    EXPECT_EQ(file.name(), "f");
    EXPECT_EQ(file.type(), filesystem::FILE_TYPE_FILE);
    EXPECT_EQ(file.size(), 4);
    EXPECT_EQ(file.mode(), 0640U);
    EXPECT_EQ(file.permissions(), "-rw-r-----");
    EXPECT_FALSE(file.owner().empty());
    EXPECT_GT(file.modified_time().seconds(), 0);
    EXPECT_NE(last_body_.find("\"size\":\"4\""), std::string::npos) << last_body_;
    const auto link = stat(folder_.path("link")).first;
    EXPECT_EQ(link.type(), filesystem::FILE_TYPE_FILE);
    EXPECT_EQ(link.mode(), 0640U);
    EXPECT_EQ(link.symlink_target(), folder_.path("f"));
    EXPECT_EQ(link.permissions()[0], 'L');
    const auto broken = stat(folder_.path("broken")).first;
    EXPECT_EQ(broken.type(), filesystem::FILE_TYPE_UNSPECIFIED);
    EXPECT_EQ(broken.symlink_target(), folder_.path("nowhere"));
    EXPECT_EQ(stat(folder_.path("none")).second, 404);
    EXPECT_EQ(stat(folder_.path("f/below")).second, 404);
    EXPECT_EQ(stat("~nobody").second, 400);
}

// F6
TEST_F(Filesystem, MoveAndRemove) {
    ASSERT_TRUE(write_file_atomic(folder_.path("f"), "x"));
    EXPECT_EQ(move(folder_.path("f"), folder_.path("new/place/g")), 200);
    EXPECT_EQ(read_file(folder_.path("new/place/g")), "x");
    EXPECT_EQ(move(folder_.path("f"), folder_.path("h")), 404);
    EXPECT_EQ(remove(folder_.path("new/place/g/below")), 200);  // nothing is there
    EXPECT_EQ(read_file(folder_.path("new/place/g")), "x");
    EXPECT_EQ(move(folder_.path("new"), folder_.path("new/inside")), 400);
    if (std::filesystem::exists("/dev/shm")) {
        const std::string other = "/dev/shm/" + random_id(10);
        EXPECT_EQ(move(folder_.path("new/place/g"), other), 200) << last_body_;
        EXPECT_EQ(remove(other), 200);
    }
    EXPECT_EQ(remove(folder_.path("new")), 200);
    EXPECT_FALSE(std::filesystem::exists(folder_.path("new")));
    EXPECT_EQ(remove(folder_.path("new")), 200);
    EXPECT_EQ(remove("/"), 400);
}

// It stays where it is, but what was made of it is all of it, although stat says that it is empty.
TEST_F(Filesystem, AMoveCopiesWhatCanBeRead) {
    EXPECT_NE(move("/proc/version", folder_.path("version")), 200);
    EXPECT_EQ(read_file(folder_.path("version")).value_or(""), read_file("/proc/version").value());
}

}  // namespace
}  // namespace gb::agent
