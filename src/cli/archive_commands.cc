// SPDX-License-Identifier: Apache-2.0
#include "cli/archive_commands.h"

#include <atomic>
#include <csignal>

#include <sys/stat.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/paths.h"
#include "cli/progress.h"
#include "node/accelerator_check.h"
#include "node/template_import.h"

namespace gb::cli {
namespace {

namespace fs = std::filesystem;


struct ArchiveOptions {
    NodeOptions node = default_node_options();
    std::string name;
    fs::path file;
    bool force = false;
};

std::atomic<bool> told_to_stop = false;

// Signals end the work at its next step, so that what is half done is removed. A read that waits is woken.
void hear_signals() {
    struct sigaction action{};
    action.sa_handler = [](int) { told_to_stop = true; };
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

std::string time_left(std::int64_t begun_ms, double fraction) {
    const double passed_s = static_cast<double>(monotonic_ms() - begun_ms) / 1000;
    if (passed_s < 1 || fraction < 0.02) return "";
    return fmt::format(", about {:.0f} s left", passed_s / fraction - passed_s);
}

TransferProgress progress_on(ProgressLine& line, const char* what) {
    return [&line, what, begun_ms = monotonic_ms()](std::string_view part, std::uint64_t done,
                                                    std::uint64_t total) -> Status {
        if (told_to_stop) return fail(ErrorCode::canceled, "interrupted; nothing is left of it");
        const double fraction = total == 0 ? 0 : static_cast<double>(done) / static_cast<double>(total);
        line.update(fraction, what,
                    fmt::format("{}, {} of {} MiB{}", part, done / kMib, total / kMib,
                                time_left(begun_ms, fraction)));
        return {};
    };
}

int ended(const Error& error) {
    const int code = complain(error);
    return error.code == ErrorCode::canceled ? kInterrupted : code;
}

// The archive under another name until it is complete; standard output is written as it comes.
class Output {
  public:
    static Result<Output> open(const fs::path& file) {
        Output out;
        if (file == "-") {
            if (::isatty(1) == 1)
                return fail(ErrorCode::invalid_argument,
                            "an archive is not for a terminal: redirect the output, or name a file with -o");
            out.fd_.reset(::fcntl(1, F_DUPFD_CLOEXEC, 3));
            if (!out.fd_) return fail_errno("standard output");
            return out;
        }
        out.file_ = file;
        out.temporary_ =
            file.parent_path() / fmt::format(".{}.part-{}", file.filename().string(), random_id(8));
        GB_TRY_ASSIGN(out.fd_, open_file(out.temporary_, O_WRONLY | O_CREAT | O_EXCL, 0644));
        return out;
    }
    Output(Output&& other) noexcept
        : fd_(std::move(other.fd_)),
          file_(std::move(other.file_)),
          temporary_(std::exchange(other.temporary_, {})) {}
    Output& operator=(Output&&) = delete;
    ~Output() {
        if (!temporary_.empty()) ::unlink(temporary_.c_str());
    }
    [[nodiscard]] int fd() const { return fd_.get(); }
    Status finish() {
        if (temporary_.empty()) return {};
        if (::fsync(fd_.get()) != 0) return fail_errno("write " + file_.string());
        if (::rename(temporary_.c_str(), file_.c_str()) != 0)
            return fail_errno("rename to " + file_.string());
        temporary_.clear();
        return {};
    }

  private:
    Output() = default;
    UniqueFd fd_;
    fs::path file_, temporary_;
};

Result<std::string> run_export(const ArchiveOptions& options) {
    TemplateStore store(options.node.templates());
    GB_TRY_ASSIGN(const StoredTemplate stored, store.find(options.name));
    const std::string& name = stored.manifest.info.name;
    const fs::path file = options.file.empty() ? fs::path(name + ".glovebox-template") : options.file;
    GB_TRY_ASSIGN(Output output, Output::open(file));
    ProgressLine line("export " + name);
    auto done = export_template(stored, output.fd(), progress_on(line, "compress"));
    if (!done) return std::unexpected(done.error().with("template " + name + " is not exported"));
    GB_TRY(output.finish());
    return fmt::format("template {} (build {}, {}) is in {}: {} MiB for {} MiB", name,
                       stored.manifest.info.build_id, engine::accelerator_name(stored.manifest.accelerator),
                       file == "-" ? "the standard output" : file.string(),
                       (done->archive_bytes + kMib / 2) / kMib, done->data_bytes / kMib);
}

Status try_kvm(const NodeOptions& node, const StoredTemplate& stored) {
    std::error_code ec;
    if (!fs::exists(stored.kernel(), ec) || !fs::exists(stored.initrd(), ec)) return {};
    GB_TRY_ASSIGN(BuilderMachinery opened, open_builder_machinery(node));
    const auto choice = check_accelerator(opened.machinery, builder_folder(node),
                                          {stored.kernel(), stored.initrd(), stored.manifest.command_line});
    if (choice.accelerator == engine::Accelerator::kvm) return {};
    return fail(
        ErrorCode::failed_precondition,
        fmt::format(
            "template '{0}' was captured under KVM, which does not work on this machine ({1}): make it here "
            "with `glovebox template prepare {0}`",
            stored.manifest.info.name, choice.reason));
}

Result<std::string> run_import(const ArchiveOptions& options) {
    if (::geteuid() != 0)
        return fail(ErrorCode::permission_denied, "run it as root (sudo): templates belong to the server");
    UniqueFd in(options.file == "-" ? ::fcntl(0, F_DUPFD_CLOEXEC, 3)
                                    : ::open(options.file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!in) return fail_errno("open " + options.file.string());
    ImportChecks checks;
    if (!options.force) {
        GB_TRY_ASSIGN(checks.host, look_at_host());
        checks.try_kvm = [&](const StoredTemplate& stored) { return try_kvm(options.node, stored); };
    }
    TemplateStore store(options.node.templates());
    ProgressLine line("import");
    auto done = import_template(in.get(), store, checks, progress_on(line, "unpack"));
    if (!done)
        return std::unexpected(done.error().with(
            fmt::format("{} is not imported", options.file == "-" ? "the archive" : options.file.string())));
    const Manifest& m = done->stored.manifest;
    return fmt::format("template {} {}: {} CPU, {} MiB memory, {} MiB disk, {}, build {}", m.info.name,
                       done->was_there ? "is already there" : "is ready", m.info.cpu_count, m.info.memory_mib,
                       m.info.disk_mib, engine::accelerator_name(m.accelerator), m.info.build_id);
}

using ArchiveWork = Result<std::string> (*)(const ArchiveOptions&);

Action action_of(const std::shared_ptr<ArchiveOptions>& options, ArchiveWork work) {
    return [options, work] {
        log::set_level(log::Level::warn);
        hear_signals();
        const auto done = work(*options);
        if (!done) return ended(done.error());
        fmt::print(options->file == "-" ? stderr : stdout, "{}\n", *done);
        return 0;
    };
}

}  // namespace

void add_archive_commands(CLI::App& group, Action& run) {
    auto options = std::make_shared<ArchiveOptions>();
    const auto add = [&](const char* name, const char* help, ArchiveWork work) {
        CLI::App* command = group.add_subcommand(name, help);
        add_data_dir(*command, options->node);
        add_templates_dir(*command, options->node);
        command->callback([&run, options, work] { run = action_of(options, work); });
        return command;
    };
    CLI::App* exports = add("export", "Write a template into a file, for other machines", run_export);
    exports->add_option("name", options->name, "Name or id of the template")->required();
    exports->add_option("-o,--output", options->file,
                        "The file, - for standard output  [./<name>.glovebox-template]");

    CLI::App* imports =
        add("import", "Take a template from a file that another machine has written", run_import);
    imports->add_option("file", options->file, "The file, - for standard input")->required();
    imports->add_flag(
        "--force", options->force,
        "Even if it cannot be started on this machine, for a folder that several share; checksums are always "
        "verified");
}

}  // namespace gb::cli
