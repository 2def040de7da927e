// SPDX-License-Identifier: Apache-2.0
// Files by HTTP against a running agent.
#pragma once

#include "guest/agent/agent_test_support.h"
#include "guest/agent/gzip.h"

namespace gb::agent {

inline std::string files_url(const std::string& path) {
    return "/files?path=" + http::percent_encode(path);
}

inline TestClient::Response upload(const TestAgent& agent, const std::string& path, std::string_view data,
                            http::Headers headers = {}) {
    headers.set("Content-Type", "application/octet-stream");
    return TestClient(agent).send("POST", files_url(path), std::move(headers), data);
}

inline TestClient::Response download(const TestAgent& agent, const std::string& path, http::Headers headers = {}) {
    return TestClient(agent).send("GET", files_url(path), std::move(headers));
}

inline std::string pattern(std::size_t size) {
    std::string out(size, '\0');
    std::uint32_t state = 12345;
    for (char& c : out) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    return out;
}

}  // namespace gb::agent
