// SPDX-License-Identifier: Apache-2.0
#include "control/events.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "base/crypto.h"

namespace gb {
namespace {

namespace json = boost::json;

SandboxRecord record() {
    SandboxRecord out;
    out.id = "i1";
    out.team_id = "team";
    out.template_id = "tid";
    out.build_id = "build";
    out.run_id = "run";
    out.ends_ms = 1'700'000'000'000;
    out.metadata = {{"a", "b"}};
    return out;
}

TEST(Events, CarryWhatTheContractNames) {
    const json::value event = json::parse(event_json(created_event(record())));
    for (const char* key : {"version", "id", "type", "eventData", "sandboxId", "sandboxExecutionId", "sandboxTemplateId",
                            "sandboxBuildId", "sandboxTeamId", "timestamp"})
        EXPECT_TRUE(event.at(key).is_string() || event.at(key).is_object()) << key;
    EXPECT_EQ(event.at("type"), "sandbox.lifecycle.created");
    EXPECT_EQ(event.at("version"), "v1");
    EXPECT_EQ(event.at("sandboxExecutionId"), "run");
    EXPECT_EQ(event.at("eventData").at("sandbox_metadata").at("a"), "b");
}

TEST(Events, AnEndSaysWhyAndWhatWasUsed) {
    SandboxRun run;
    run.started_ms = 1000;
    run.ended_ms = 4000;
    run.cpu_count = 2;
    const json::value killed = json::parse(event_json(killed_event(record(), &run, "its lifetime ended")));
    EXPECT_EQ(killed.at("eventData").at("reason"), "its lifetime ended");
    EXPECT_EQ(killed.at("eventData").at("execution").at("execution_time"), 3000);
    EXPECT_EQ(killed.at("eventData").at("execution").at("vcpu_count"), 2);
    const json::value without = json::parse(event_json(killed_event(record(), nullptr, "x")));
    EXPECT_FALSE(without.at("eventData").as_object().contains("execution"));
    EXPECT_EQ(json::parse(event_json(updated_event(record()))).at("eventData").at("set_timeout"),
              "2023-11-14T22:13:20.000Z");
    EXPECT_TRUE(json::parse(event_json(resumed_event(record()))).at("eventData").is_null());
}

TEST(Events, EveryTypeIsListed) {
    SandboxRun run;
    for (const Event& event :
         {created_event(record()), resumed_event(record()), updated_event(record()),
          killed_event(record(), &run, ""), paused_event(record(), run), expiring_event(record(), 1)})
        EXPECT_NE(std::ranges::find(kEventTypes, event.type), kEventTypes.end()) << event.type;
}

TEST(Webhooks, TheSignatureIsTheHashOfSecretAndBody) {
    // printf 'secret{"a":1}' | openssl dgst -sha256 -binary | base64 | tr '+/' '-_' | tr -d =
    EXPECT_EQ(webhook_signature("secret", R"({"a":1})"), base64url_encode(sha256(R"(secret{"a":1})")));
    EXPECT_EQ(webhook_signature("", ""), "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
}

}  // namespace
}  // namespace gb
