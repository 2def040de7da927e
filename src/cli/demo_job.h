// SPDX-License-Identifier: Apache-2.0
// The demo's story, from the open way out to the destroyed sandbox.
#pragma once

#include <functional>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "cli/demo_client.h"
#include "cli/demo_data.h"
#include "cli/demo_report.h"

namespace gb::cli {

struct DemoJob {
    DemoClient client;
    DemoReport& report;              // its folder has the files of the data and of the script
    std::filesystem::path data_dir;  // of the server, to look for what is left
    boost::asio::ip::tcp::endpoint outside;
    std::string url;  // of the same
    std::function<void(double fraction, std::string step)> progress;
};

inline constexpr const char* kDemoScript = "agent_script.py.txt";

// An error: it could not be carried out. Findings that are not good are the report's.
boost::asio::awaitable<Status> run_demo_job(DemoJob job, const DemoData& data);

// Files and processes of a sandbox that are still there.
std::vector<std::string> sandbox_leftovers(const std::filesystem::path& data_dir,
                                           const std::string& sandbox_id);

}  // namespace gb::cli
