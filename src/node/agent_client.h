// Talks to the agent of one guest from the host's side of its network. Blocking; each call is a connection of its own
// on a private event loop, so any thread may call.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "node/node.h"

namespace gb {

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
    [[nodiscard]] virtual std::optional<int> exit_code() const = 0;  // nothing while it runs
};

class AgentClient {
  public:
    // Makes an unconnected, non-blocking TCP socket from which the guest can be reached.
    using OpenSocket = std::function<Result<UniqueFd>()>;
    explicit AgentClient(OpenSocket open_socket) : open_socket_(std::move(open_socket)) {}

    // Waits until the agent answers.
    Status wait_ready(std::chrono::milliseconds limit) const;
    // Gives the guest its identity, the time of day and fresh randomness.
    Status init(const GuestIdentity& identity, std::chrono::milliseconds limit) const;
    // The same authority for a sandbox that runs, whose rules have changed; "" and "" take it away. Programs that are
    // started from then on trust it. Must not be called while the guest's disk is frozen. The guest's files may not allow
    // it; what could be done has been done then. init() does not fail for that reason.
    Status trust(const std::string& authority_pem, const std::string& authority_hash,
                 std::chrono::milliseconds limit) const;
    // Writes everything to the guest's disk and stops writing, for at most a minute.
    Status freeze(std::chrono::milliseconds limit) const;
    Status thaw(std::chrono::milliseconds limit) const;
    // Lets nothing of its users run until release() or the next init(): for the moment in which its memory is saved.
    Status hold(std::chrono::milliseconds limit) const;
    Status release(std::chrono::milliseconds limit) const;
    // Runs a command line by `bash -l -c` and waits for its end.
    Result<CommandResult> run(const std::string& command, const std::string& user, std::chrono::milliseconds limit) const;
    // Starts a command line and returns when it runs.
    Result<std::unique_ptr<RunningCommand>> start(const std::string& command, const std::string& user,
                                                  const std::string& tag) const;
    // One request to any port of the guest; the body of a 2xx answer.
    Result<std::string> request(std::uint16_t port, const std::string& method, const std::string& path,
                                const std::string& body, std::chrono::milliseconds limit,
                                std::string_view content_type = "application/json") const;

  private:
    Status tell(const std::string& path, std::chrono::milliseconds limit) const;
    OpenSocket open_socket_;
};

}  // namespace gb
