// SPDX-License-Identifier: Apache-2.0
// What the store keeps: plain rows, no behaviour.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gb {

struct Team {
    std::string id;    // UUID
    std::string name;
    std::string slug;  // namespace of its template names
    std::string plan;  // name of a plan of the configuration: what the team may use
};

struct ApiKey {
    std::string id;       // UUID
    std::string team_id;
    std::string name;
    std::string hash;     // SHA-256 of the whole key, hex; the key itself is never stored
    std::string mask;     // what a listing may show, e.g. "e2b_1a2b…c3d4"
    std::int64_t created_ms = 0;
};

enum class SandboxState { creating, running, pausing, paused, resuming, killing };

// A header that is set on requests to a host. Values name secrets, and hold none of ours.
struct HeaderRow {
    std::string host, name, value;
    bool operator==(const HeaderRow&) const = default;
};

// The client's proxy that a sandbox's connections go through.
struct EgressProxyRow {
    std::string address;  // "host:port"; empty: none
    std::string username;
    std::string sealed_password;  // base/seal.h; empty: none
    bool operator==(const EgressProxyRow&) const = default;
};

struct SandboxRecord {
    std::string id;
    std::string team_id;
    std::string template_id;
    std::string template_name;
    std::string build_id;
    SandboxState state = SandboxState::creating;
    std::string run_id;            // UUID of the current continuous run, the last one while paused
    std::int64_t started_ms = 0;   // of the current run
    std::int64_t ends_ms = 0;      // of the current run; while paused: when it was paused
    int timeout_s = 300;           // as asked at creation
    int cpu_count = 1;
    int memory_mib = 512;
    int disk_mib = 0;
    bool secure = true;
    bool auto_pause = false;          // what its lifetime's end does: pause or kill
    bool auto_pause_memory = true;    // with memory, or the file system only
    bool auto_resume = false;         // on traffic
    bool paused_with_memory = true;   // while paused: what was kept
    std::int64_t warned_ms = 0;  // while paused: when its team was told that it will be removed; 0: was not
    bool public_traffic = true;       // false: its ports ask for the traffic token
    std::string mask_request_host;    // Host header that its services see, "${PORT}" replaced; empty: as it came
    std::optional<bool> allow_internet_access;         // as the client gave it
    std::string network_json;                          // "network" of the create request, empty when absent
    std::vector<std::string> allow_out, deny_out;      // of it, for the machine that runs it next
    std::vector<HeaderRow> header_rules;               // in the order in which they are set
    EgressProxyRow egress_proxy;
    std::map<std::string, std::string> metadata;
    std::map<std::string, std::string> env_vars;       // given again to a resumed guest
};

// What a team can start sandboxes from, beside the templates that the node has for everybody.
struct TemplateRecord {
    std::string id;  // 20 of [a-z0-9]
    std::string team_id;
    std::string name;  // alone, in the namespace of its team; empty: it has none
    std::int64_t created_ms = 0;
};

// One state of a template that can be started: today always the snapshot of a sandbox.
struct BuildRecord {
    std::string id;  // UUID
    std::string template_id;
    std::string sandbox_id;  // the one it was taken of
    int cpu_count = 1;
    int memory_mib = 0;
    int disk_mib = 0;
    std::int64_t created_ms = 0;
    std::int64_t warned_ms = 0;  // when its team was told that it will be removed; 0: it was not
};

// A name of a build inside its template; "default" is meant when none is said.
struct TagRecord {
    std::string template_id;
    std::string tag;
    std::string build_id;
    std::int64_t created_ms = 0;  // when it was given to this build
};

// One continuous run of a sandbox, from its start or resume to its pause or end: what is metered.
struct SandboxRun {
    std::string id;  // UUID
    std::string sandbox_id;
    std::string team_id;
    std::string template_id;
    int cpu_count = 1;
    int memory_mib = 512;
    std::int64_t started_ms = 0;
    std::int64_t seen_ms = 0;   // known to have run until then
    std::int64_t ended_ms = 0;  // 0: it goes on
};

// Something that happened to a sandbox, for its team to read and to be told.
struct Event {
    std::int64_t sequence = 0;  // given by the store, grows
    std::string id;             // UUID
    std::string type;           // "sandbox.lifecycle.created"
    std::int64_t time_ms = 0;
    std::string team_id;
    std::string sandbox_id;
    std::string run_id;
    std::string template_id;
    std::string build_id;
    std::string data_json;  // an object, or "null"
};

struct Webhook {
    std::string id;  // UUID
    std::string team_id;
    std::string name;
    std::string url;
    std::string secret;  // signs what is delivered; never shown
    bool enabled = true;
    std::vector<std::string> events;  // types
    std::int64_t created_ms = 0;
};

// What header rules of a team's sandboxes may name. The value is sealed (base/seal.h), never shown.
struct SecretRecord {
    std::string id;  // "sec_" and a UUID
    std::string team_id;
    std::string name;
    std::int64_t version = 1;  // grows with each new value
    std::map<std::string, std::string> metadata;
    std::string sealed;
    std::int64_t created_ms = 0, updated_ms = 0;
};

// An event on its way to a webhook.
struct Delivery {
    std::string id;  // UUID, the same for every attempt
    Webhook webhook;
    Event event;
    int attempts = 0;
};

// What became of a delivery so far; those that arrived are forgotten.
struct DeliveryStatus {
    std::string id;
    std::int64_t place = 0;  // of its event in the order of events
    std::string event_id, event_type, sandbox_id;
    std::int64_t event_ms = 0;
    int attempts = 0;
    std::int64_t tried_ms = 0;                // the last attempt; 0: none yet
    std::optional<std::int64_t> next_ms;      // the next attempt; nothing: given up
    std::string last_error;                   // holds neither URL nor secret
};

// Use of a sandbox's machine at one moment, as its guest counts it.
struct MetricPoint {
    std::string sandbox_id;
    std::string team_id;
    std::int64_t time_ms = 0;
    int cpu_count = 0;
    double cpu_used_pct = 0;  // 100: one processor busy
    std::int64_t mem_used = 0, mem_total = 0, mem_cache = 0;  // bytes
    std::int64_t disk_used = 0, disk_total = 0;
};

struct LogEntry {
    std::int64_t time_ms = 0;
    std::string sandbox_id;
    std::string team_id;
    std::string level;  // debug, info, warn, error
    std::string message;
    std::map<std::string, std::string> fields;
};

}  // namespace gb
