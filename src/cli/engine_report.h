// SPDX-License-Identifier: Apache-2.0
// What `glovebox doctor --engine` found, as one block that may be pasted into a report: nothing in it names the host, its
// addresses, its users or their folders. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "node/engine_trial.h"

namespace gb::cli {

struct EngineHost {
    std::string version;       // of this program
    std::string distribution;  // "Debian GNU/Linux 12 (bookworm)"
    std::string kernel;        // "6.1.0-57-amd64 x86_64"
    std::string processor;     // its model, and how many
    std::string memory;
    std::string kvm;          // whether /dev/kvm opens
    std::string virtualised;  // whether this host is a virtual machine itself, and can have machines in it
    std::string cgroups;      // version and controllers
};

std::string engine_report(const EngineHost& host, const EngineTrial& trial, std::span<const std::string> secret = {});
boost::json::object engine_report_json(const EngineHost& host, const EngineTrial& trial,
                                       std::span<const std::string> secret = {});

// An error in one line of at most 300 bytes without URLs, addresses, host names, folders of users, and the words in `secret`,
// such as the name of the host.
std::string publishable(std::string_view error, std::span<const std::string> secret = {});

// What of /proc/cpuinfo says so: "AMD EPYC, 2 processors"; empty when it does not.
std::string processor_of(std::string_view cpuinfo);
// By the processor's flags hypervisor, vmx and svm; empty when it has none at all.
std::string virtualised_of(std::string_view cpuinfo);
// PRETTY_NAME of os-release(5).
std::string distribution_of(std::string_view os_release);

}  // namespace gb::cli
