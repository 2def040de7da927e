// SPDX-License-Identifier: Apache-2.0
// Talks to the agent of one guest from the host's side of its network. Blocking; each call is a connection of its own
// on a private event loop, so any thread may call. Every call has a limit (base/stall.h); what a command prints, and what
// the client's signs show, is movement.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/stall.h"
#include "base/unique_fd.h"
#include "node/node.h"

namespace gb {

inline constexpr std::uint16_t kInterpreterPort = 49999;  // of a guest that has one

inline constexpr const char* kGuestAddress = "10.11.0.2";
inline constexpr const char* kGuestGateway = "10.11.0.1";

// What a machine becomes when it is handed to a client (contract 3.6, /init).
struct GuestIdentity {
    std::string sandbox_id;
    std::string template_id;
    std::string access_token;  // empty: none
    std::string default_user;
    std::string workdir;
    std::map<std::string, std::string> env_vars;
    // The certificate authority that the guest is to trust, PEM and subject hash (egress/certificate_authority.h); empty:
    // none, and what an earlier sandbox left is taken away.
    std::string authority_pem, authority_hash;
};

struct CommandResult {
    int exit_code = 0;
    std::string out, err;  // the first megabyte of each
};

// A command that goes on in the guest. What it prints is kept, the last 64 KiB, as long as somebody holds this object;
// letting go of it does not end the command.
class RunningCommand {
  public:
    virtual ~RunningCommand() = default;
    [[nodiscard]] virtual std::string output() const = 0;
    // How much it has printed so far, kept or not.
    [[nodiscard]] virtual std::uint64_t printed() const = 0;
    // Nothing while it runs; an error when nobody knows what became of it.
    [[nodiscard]] virtual std::optional<Result<int>> ended() const = 0;
};

class AgentClient {
  public:
    // Makes an unconnected, non-blocking TCP socket from which the guest can be reached.
    using OpenSocket = std::function<Result<UniqueFd>()>;
    // `signs`: what shows that a guest which does not answer yet is getting on.
    explicit AgentClient(OpenSocket open_socket, Signs signs = {})
        : open_socket_(std::move(open_socket)), signs_(std::move(signs)) {}

    // Waits until the agent answers.
    Status wait_ready(const Patience& patience) const;
    // Gives the guest its identity, the time of day and fresh randomness.
    Status init(const GuestIdentity& identity, const Patience& patience) const;
    // The same authority for a sandbox that runs, whose rules have changed; "" and "" take it away. Programs that are
    // started from then on trust it. Must not be called while the guest's disk is frozen. The guest's files may not allow
    // it; what could be done has been done then. init() does not fail for that reason.
    Status trust(const std::string& authority_pem, const std::string& authority_hash,
                 const Patience& patience) const;
    // Writes everything to the guest's disk and stops writing, for at most a minute.
    Status freeze(const Patience& patience) const;
    Status thaw(const Patience& patience) const;
    // Lets nothing of its users run until release() or the next init(): for the moment in which its memory is saved.
    Status hold(const Patience& patience) const;
    Status release(const Patience& patience) const;
    // Runs a command line by `bash -l -c` and waits for its end.
    Result<CommandResult> run(const std::string& command, const std::string& user, const Patience& patience) const;
    // Starts a command line and returns when it runs.
    Result<std::unique_ptr<RunningCommand>> start(const std::string& command, const std::string& user,
                                                  const std::string& tag, const Patience& patience) const;
    // One request to any port of the guest; the body of a 2xx answer.
    Result<std::string> request(std::uint16_t port, const std::string& method, const std::string& path,
                                const std::string& body, const Patience& patience,
                                std::string_view content_type = "application/json") const;
    // The answer to a GET, whatever its status.
    struct Answer {
        int status = 0;
        std::string body;
    };
    Result<Answer> get(std::uint16_t port, const std::string& path, const Patience& patience) const;

  private:
    Status tell(const std::string& path, const Patience& patience) const;
    OpenSocket open_socket_;
    Signs signs_;
};

}  // namespace gb
