// SPDX-License-Identifier: Apache-2.0
#include "guest/interpreter/connection.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

namespace gb::interpreter {
namespace {

int port(Channel channel) {
    return static_cast<int>(channel);  // with `ipc` a port is only the last part of a socket's name
}

std::string socket_prefix(const Connection& connection) {
    return connection.folder + "/s";
}

}  // namespace

std::string endpoint(const Connection& connection, Channel channel) {
    return fmt::format("ipc://{}-{}", socket_prefix(connection), port(channel));
}

std::string connection_file(const Connection& connection) {
    boost::json::object file;
    file["transport"] = "ipc";
    file["ip"] = socket_prefix(connection);
    file["shell_port"] = port(Channel::shell);
    file["iopub_port"] = port(Channel::iopub);
    file["stdin_port"] = port(Channel::stdin_);
    file["control_port"] = port(Channel::control);
    file["hb_port"] = port(Channel::heartbeat);
    file["signature_scheme"] = "hmac-sha256";
    file["key"] = connection.key;
    return boost::json::serialize(file);
}

}  // namespace gb::interpreter
