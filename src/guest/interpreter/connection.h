// SPDX-License-Identifier: Apache-2.0
// Where a kernel listens: the Jupyter connection file (jupyter-client documentation, "Connection files") with
// the transport `ipc`. Unix sockets survive a machine snapshot; TCP connections over loopback do not.
#pragma once

#include <string>
#include <string_view>

namespace gb::interpreter {

enum class Channel { shell = 1, iopub = 2, stdin_ = 3, control = 4, heartbeat = 5 };

struct Connection {
    std::string folder;  // private to one kernel, holds its sockets
    std::string key;     // signs every message
};

constexpr std::string_view kConnectionFile = "connection.json";  // in the folder

std::string endpoint(const Connection& connection, Channel channel);  // ipc://<folder>/s-<n>
std::string connection_file(const Connection& connection);            // JSON text

}  // namespace gb::interpreter
