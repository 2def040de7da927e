// What the store keeps: plain rows, no behaviour.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace gb {

struct Team {
    std::string id;    // UUID
    std::string name;
    std::string slug;  // namespace of its template names
    int max_sandboxes = 100;           // running at once
    int max_lifetime_s = 24 * 3600;    // of one continuous run
};

struct ApiKey {
    std::string id;       // UUID
    std::string team_id;
    std::string name;
    std::string hash;     // SHA-256 of the whole key, hex; the key itself is never stored
    std::string mask;     // what a listing may show, e.g. "e2b_1a2b…c3d4"
    std::int64_t created_ms = 0;
};

enum class SandboxState { creating, running, killing };

struct SandboxRecord {
    std::string id;
    std::string team_id;
    std::string template_id;
    std::string template_name;
    std::string build_id;
    SandboxState state = SandboxState::creating;
    std::int64_t started_ms = 0;
    std::int64_t ends_ms = 0;
    int cpu_count = 1;
    int memory_mib = 512;
    int disk_mib = 0;
    bool secure = true;
    std::optional<bool> allow_internet_access;         // as the client gave it
    std::string network_json;                          // "network" of the create request, empty when absent
    std::map<std::string, std::string> metadata;
};

}  // namespace gb
