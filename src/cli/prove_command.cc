// SPDX-License-Identifier: Apache-2.0
// glovebox prove-egress: tries every way out that we know from inside a sandbox, the same from here as a
// control, and holds both against the policy in force and the decision log.
#include <chrono>
#include <thread>

#include <netinet/in.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>
#include <ifaddrs.h>

#include "base/clock.h"
#include "base/error_table.h"
#include "base/file.h"
#include "base/ids.h"
#include "cli/ask.h"
#include "cli/egress_proof.h"
#include "cli/job_client.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "http/message.h"

namespace gb::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr std::chrono::milliseconds kPatience{5'000};
constexpr std::chrono::minutes kProveLimit{30};
constexpr std::chrono::milliseconds kLogPatience{3'000};  // a line is written a moment after its packet
constexpr int kLifetime = 900;                            // seconds, of a sandbox that is made for this
constexpr int kDoesNotHold = 10;                          // exit code, of no error
constexpr std::string_view kSlotLinks = "gb";             // devices of the host that lead to sandboxes

struct ProveOptions : AskOptions {
    std::string subject, network_file;
    std::vector<std::string> addresses{"1.1.1.1", "8.8.8.8"}, names;
};

std::string text_in(const json::value& object, const char* field) {
    const std::string text = field_text(object, field);
    return text == "-" ? "" : text;
}

// A sandbox that was made for this ends with it.
class Subject {
  public:
    static Result<Subject> open(const ServerAddress& server, const ProveOptions& options) {
        auto info = call_api(server, "GET", "/sandboxes/" + http::percent_encode(options.subject));
        if (info) {
            if (!options.network_file.empty())
                return fail(
                    ErrorCode::invalid_argument,
                    fmt::format("--network is for a sandbox that is made from a template; '{}' is one "
                                "already (`glovebox sandbox network --set` replaces its rules)",
                                options.subject));
            return Subject(server, *info, false);
        }
        if (info.error().code != ErrorCode::not_found && info.error().code != ErrorCode::invalid_argument)
            return std::unexpected(info.error());
        json::object body{{"templateID", options.subject}, {"timeout", kLifetime}};
        if (!options.network_file.empty()) {
            GB_TRY_ASSIGN(const std::string text, read_file(options.network_file));
            boost::system::error_code ec;
            body["network"] = json::parse(text, ec);
            if (ec) return fail(ErrorCode::invalid_argument, options.network_file + " is not JSON");
        }
        auto made = call_api(server, "POST", "/v2/sandboxes", json::serialize(body));
        if (!made)
            return std::unexpected(made.error().with(fmt::format(
                "there is no sandbox '{0}', and none can be made of a template '{0}'", options.subject)));
        return Subject(server, *made, true);
    }
    ~Subject() {
        if (made_) (void)call_api(server_, "DELETE", "/sandboxes/" + sandbox_.id);
    }
    Subject(Subject&& other) noexcept
        : server_(other.server_), sandbox_(other.sandbox_), made_(std::exchange(other.made_, false)) {}
    Subject& operator=(Subject&&) = delete;

    [[nodiscard]] const JobSandbox& sandbox() const { return sandbox_; }

  private:
    Subject(const ServerAddress& server, const json::value& info, bool made)
        : server_(server),
          sandbox_{text_in(info, "sandboxID"), text_in(info, "envdAccessToken"), "root"},
          made_(made) {}
    ServerAddress server_;
    JobSandbox sandbox_;
    bool made_;
};

// Addresses of this machine, and of the other ends of its links to sandboxes.
void read_interfaces(Surroundings& around) {
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return;
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
        if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
        const net::Ipv4 address{ntohl(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr)};
        const std::string_view name = one->ifa_name;
        if (name == "lo") continue;
        around.host.push_back(address);
        if (name.starts_with(kSlotLinks)) around.slots.push_back(net::Ipv4{address.value + 1});
    }
    ::freeifaddrs(list);
    // Links to sandboxes are as many as there are of those; a few of them say what all would.
    constexpr std::size_t kMost = 8;
    if (around.host.size() > kMost) around.host.resize(kMost);
    if (around.slots.size() > kMost) around.slots.resize(kMost);
}

Result<Surroundings> look_around(const PolicyInForce& in_force, const ProveOptions& options,
                                 std::uint16_t server_port) {
    Surroundings out;
    out.server_port = server_port;
    for (const std::string& text : options.addresses) {
        const auto address = net::parse_ipv4(text);
        if (!address)
            return fail(ErrorCode::invalid_argument, fmt::format("--address '{}' is no IPv4 address", text));
        out.addresses.push_back(*address);
    }
    std::vector<std::string> names = names_to_try(in_force);
    for (const std::string& text : options.names) {
        auto host = net::parse_host(text);
        if (!host || host->kind != net::Host::Kind::name)
            return fail(ErrorCode::invalid_argument, fmt::format("--name '{}' is no name of a host", text));
        names.push_back(host->name);
    }
    std::vector<probe::Probe> questions;
    for (const std::string& name : names)
        questions.push_back({probe::Way::dns_udp,
                             in_force.resolvers.empty() ? "127.0.0.53" : in_force.resolvers.front(), 53, name,
                             ""});
    const auto answers = probe::attempt_all(questions, kPatience);
    for (std::size_t i = 0; i < names.size(); ++i) out.names[names[i]] = net::parse_ipv4(answers[i].address);
    read_interfaces(out);
    return out;
}

std::string run_message(const std::string& program, const std::vector<Target>& targets) {
    json::array arguments{"-c", "chmod 700 \"$1\" && \"$@\"; code=$?; rm -f \"$1\"; exit $code",
                          "glovebox-probe", program, std::to_string(kPatience.count())};
    for (const Target& target : targets) arguments.emplace_back(probe::format_probe(target.inside));
    return json::serialize(json::object{
        {"process", json::object{{"cmd", "/bin/sh"}, {"args", std::move(arguments)}}}, {"stdin", false}});
}

asio::awaitable<Result<std::vector<probe::Outcome>>> try_inside(JobClient& client, JobSandbox sandbox,
                                                                std::filesystem::path program,
                                                                const std::vector<Target>& targets) {
    const std::string path = "/tmp/glovebox-probe-" + random_id(12);
    GB_CO_TRY(co_await client.upload(sandbox, {std::move(program), path}));
    std::vector<probe::Outcome> out(targets.size());
    std::string rest, complaint;
    const auto take = [&](const AgentEvent& event) -> Status {
        if (complaint.size() < 500) complaint += event.err;
        rest += event.out;
        for (std::size_t end = 0; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
            if (auto read = probe::parse_outcome(std::string_view(rest).substr(0, end));
                read && read->index < out.size())
                out[read->index] = std::move(read->outcome);
        if (rest.size() > 65'536) return fail(ErrorCode::data_loss, "the sandbox prints no lines");
        return {};
    };
    GB_CO_TRY_ASSIGN(const int code,
                     co_await client.run(sandbox, run_message(path, targets), kProveLimit, take));
    if (code != 0)
        co_return fail(ErrorCode::failed_precondition,
                       fmt::format("the attempts cannot be made inside, exit code {}: {}", code, complaint));
    co_return out;
}

std::vector<probe::Outcome> try_here(const std::vector<Target>& targets) {
    std::vector<probe::Probe> probes;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < targets.size(); ++i)
        if (targets[i].control) {
            probes.push_back(*targets[i].control);
            places.push_back(i);
        }
    const auto outcomes = probe::attempt_all(probes, kPatience);
    std::vector<probe::Outcome> out(targets.size());
    for (std::size_t i = 0; i < places.size(); ++i) out[places[i]] = outcomes[i];
    return out;
}

// The lines since then, once each target that is to have one has it, or after a while.
Result<json::array> read_log(const ServerAddress& server, const std::string& id, const std::string& since,
                             const std::vector<Target>& targets) {
    const std::string path =
        fmt::format("/glovebox/sandboxes/{}/egress?limit=100000", http::percent_encode(id));
    const std::int64_t deadline = monotonic_ms() + kLogPatience.count();
    for (;;) {
        GB_TRY_ASSIGN(const json::value answer, call_api(server, "GET", path));
        if (!answer.is_array()) return fail(ErrorCode::internal, "the server's log is no list");
        json::array lines;
        for (const json::value& line : answer.get_array())
            if (field_text(line, "time") >= since) lines.push_back(line);
        const bool complete = std::ranges::all_of(
            targets, [&](const Target& target) { return !log_line_of(target, lines).empty(); });
        if (complete || monotonic_ms() >= deadline) return lines;
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
}

Result<std::vector<ProofRow>> run_proof(const ProveOptions& options, const std::filesystem::path& program) {
    ProgressLine progress("prove-egress");
    progress.update(0, "make ready", "");
    GB_TRY_ASSIGN(const ServerAddress server, server_of(options));
    GB_TRY_ASSIGN(const ServerPlace place, resolve_server(server.url));
    GB_TRY_ASSIGN(const Subject subject, Subject::open(server, options));
    const std::string& id = subject.sandbox().id;
    GB_TRY_ASSIGN(
        const json::value shown,
        call_api(server, "GET", fmt::format("/glovebox/sandboxes/{}/network", http::percent_encode(id))));
    GB_TRY_ASSIGN(const PolicyInForce in_force, read_policy_in_force(shown));
    progress.update(0.1, "look up names", "");
    GB_TRY_ASSIGN(const Surroundings around, look_around(in_force, options, place.endpoint.port()));
    const std::vector<Target> targets = egress_targets(in_force, around);

    progress.update(0.2, "try from the host", fmt::format("{} ways", targets.size()));
    const auto controls = try_here(targets);
    progress.update(0.5, "try from inside", fmt::format("{} ways", targets.size()));
    const std::string since = rfc3339(now_ms());
    JobClient client(server, place);
    asio::io_context io(1);
    Result<std::vector<probe::Outcome>> seen = fail(ErrorCode::canceled, "not run");
    asio::co_spawn(io, try_inside(client, subject.sandbox(), program, targets),
                   [&](const std::exception_ptr& failure, Result<std::vector<probe::Outcome>> outcomes) {
                       if (failure) std::rethrow_exception(failure);
                       seen = std::move(outcomes);
                   });
    io.run();
    if (!seen) return std::unexpected(seen.error());
    progress.update(0.9, "read the log", "");
    GB_TRY_ASSIGN(const json::array lines, read_log(server, id, since, targets));
    std::vector<ProofRow> rows;
    for (std::size_t i = 0; i < targets.size(); ++i)
        rows.push_back(prove(targets[i], std::move((*seen)[i]), controls[i], lines));
    return rows;
}

int prove_egress(const ProveOptions& options) {
    const std::filesystem::path program = options.node.guest_dir / "glovebox-probe";
    std::error_code ec;
    if (!std::filesystem::is_regular_file(program, ec))
        return complain(
            {ErrorCode::failed_precondition,
             fmt::format("{} is missing: it is installed beside the guest's agent", program.string())});
    auto rows = run_proof(options, program);
    if (!rows) return complain(rows.error());
    const auto faults = std::ranges::count_if(*rows, [](const ProofRow& row) { return is_fault(row.proof); });
    if (options.json)
        fmt::print("{}\n", json::serialize(proof_json(*rows)));
    else
        fmt::print("{}\n{}\n", proof_table(*rows), proof_summary(*rows));
    return faults == 0 ? 0 : kDoesNotHold;
}

}  // namespace

void add_prove(CLI::App& app, Action& run) {
    auto options = std::make_shared<ProveOptions>();
    CLI::App* command = add_asking(
        app, "prove-egress",
        "Try every way out from inside a sandbox and from here, and compare both with its policy and its log",
        options, run, [options] { return prove_egress(*options); });
    command->add_option("subject", options->subject, "Id of a running sandbox, or a template to make one of")
        ->required();
    command->add_option("--network", options->network_file,
                        "File with the network of the sandbox that is made of a template, as JSON");
    command->add_option("--address", options->addresses,
                        "Public address to try, in place of the two usual ones");
    command->add_option("--name", options->names, "Name to try, beside those that the policy speaks of");
}

}  // namespace gb::cli
