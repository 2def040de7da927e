// SPDX-License-Identifier: Apache-2.0
#include "node/paused_sandbox.h"

#include <algorithm>

#include <sys/stat.h>

#include <boost/json.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"

namespace gb {
namespace fs = std::filesystem;
namespace json = boost::json;
namespace {

constexpr int kPausedFormat = 1;
constexpr std::string_view kWithMemory = "with_memory";
constexpr std::string_view kFilesystemOnly = "filesystem_only";

// Fields that must be there and of their kind; remembers the first that is not.
class Fields {
  public:
    explicit Fields(const json::object& object) : object_(object) {}
    std::string text(const char* name) {
        const json::value* value = object_.if_contains(name);
        if (value != nullptr && value->is_string()) return std::string(value->get_string());
        return miss(name), std::string();
    }
    // Not negative.
    std::int64_t number(const char* name) {
        const json::value* value = object_.if_contains(name);
        if (value != nullptr && value->is_int64() && value->get_int64() >= 0) return value->get_int64();
        return miss(name), 0;
    }
    [[nodiscard]] const std::string& missing() const { return missing_; }

  private:
    void miss(const char* name) {
        if (missing_.empty()) missing_ = name;
    }
    const json::object& object_;
    std::string missing_;
};

std::unexpected<Error> unreadable_manifest(std::string_view why) {
    return fail(ErrorCode::data_loss, fmt::format("the manifest of the paused sandbox {}", why));
}

Status check_size(const fs::path& file, std::uint64_t bytes) {
    std::error_code ec;
    const std::uintmax_t size = fs::file_size(file, ec);
    if (ec)
        return fail(ErrorCode::data_loss,
                    fmt::format("{} of the paused sandbox is missing", file.filename().string()));
    if (size == bytes) return {};
    return fail(ErrorCode::data_loss, fmt::format("{} of the paused sandbox has {} bytes and not {}",
                                                  file.filename().string(), size, bytes));
}

Status remove_file(const fs::path& path) {
    if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
    return fail_errno(fmt::format("remove {}", path.string()));
}

}  // namespace

fs::path base_of(const SandboxFolder& folder, const fs::path& build) {
    std::error_code ec;
    const fs::path own = folder.base();
    const bool linked = fs::is_regular_file(own / "memory.img", ec) && fs::is_regular_file(own / "disk.img", ec);
    return linked || build.empty() ? own : build;
}

Result<DiskMark> mark_of(const fs::path& disk) {
    struct stat st{};
    if (::stat(disk.c_str(), &st) != 0) return fail_errno(fmt::format("stat {}", disk.string()));
    return DiskMark{static_cast<std::uint64_t>(st.st_size),
                    std::int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec};
}

std::string write_paused(const PausedSandbox& p) {
    json::object out{{"format", kPausedFormat},
                     {"id", p.id},
                     {"mode", p.mode == PauseMode::with_memory ? kWithMemory : kFilesystemOnly},
                     {"paused_ms", p.paused_ms},
                     {"disk_bytes", p.disk.bytes},
                     {"disk_written_ns", p.disk.written_ns},
                     {"template", json::parse(write_manifest(p.from))}};
    if (p.mode == PauseMode::with_memory) {
        out["state_bytes"] = p.saved.state_bytes;
        out["state_sha256"] = p.saved.state_sha256;
        out["memory_bytes"] = p.saved.memory_bytes;
        out["memory_checksum"] = p.saved.memory_checksum;
    }
    return json::serialize(out) + "\n";
}

Result<PausedSandbox> parse_paused(std::string_view text) {
    boost::system::error_code ec;
    const json::value value = json::parse(json::string_view(text.data(), text.size()), ec);
    if (ec || !value.is_object()) return unreadable_manifest("is not a JSON object");
    const json::object& object = value.get_object();
    const json::value* format = object.if_contains("format");
    if (format == nullptr || !format->is_int64()) return unreadable_manifest("has no version");
    if (format->get_int64() != kPausedFormat)
        return fail(
            ErrorCode::failed_precondition,
            fmt::format(
                "the sandbox was paused by another version of this server (format {}, this one reads {})",
                format->get_int64(), kPausedFormat));
    Fields fields(object);
    PausedSandbox p;
    p.id = fields.text("id");
    const std::string mode = fields.text("mode");
    p.mode = mode == kFilesystemOnly ? PauseMode::filesystem_only : PauseMode::with_memory;
    p.paused_ms = fields.number("paused_ms");
    p.disk.bytes = static_cast<std::uint64_t>(fields.number("disk_bytes"));
    p.disk.written_ns = fields.number("disk_written_ns");
    if (p.mode == PauseMode::with_memory) {
        p.saved.state_bytes = static_cast<std::uint64_t>(fields.number("state_bytes"));
        p.saved.state_sha256 = fields.text("state_sha256");
        p.saved.memory_bytes = static_cast<std::uint64_t>(fields.number("memory_bytes"));
        p.saved.memory_checksum = static_cast<std::uint32_t>(fields.number("memory_checksum"));
    }
    if (!fields.missing().empty()) return unreadable_manifest(fmt::format("lacks '{}'", fields.missing()));
    if (mode != kWithMemory && mode != kFilesystemOnly)
        return unreadable_manifest(fmt::format("has the mode '{}'", mode));
    const json::value* from = object.if_contains("template");
    if (from == nullptr) return unreadable_manifest("lacks 'template'");
    GB_TRY_ASSIGN(p.from, parse_manifest(json::serialize(*from)));
    return p;
}

Result<PausedSandbox> read_paused(const SandboxFolder& folder) {
    GB_TRY_ASSIGN(const std::string text, read_file(folder.manifest()));
    GB_TRY_ASSIGN(PausedSandbox paused, parse_paused(text));
    if (paused.id != folder.path().filename())
        return unreadable_manifest(fmt::format("is of another sandbox, '{}'", paused.id));
    auto disk = mark_of(folder.disk());
    if (!disk) return fail(ErrorCode::data_loss, "the disk of the paused sandbox is missing");
    if (paused.mode == PauseMode::with_memory && *disk != paused.disk)
        return fail(ErrorCode::aborted, "the sandbox has run on since it was paused");
    if (paused.mode == PauseMode::with_memory) {
        GB_TRY(check_size(folder.state(), paused.saved.state_bytes));
        GB_TRY(check_size(folder.memory(), paused.saved.memory_bytes));
    }
    return paused;
}

Status put_paused(const SandboxFolder& folder, const PausedSandbox& paused) {
    GB_TRY(write_file_atomic(folder.manifest(), write_paused(paused), 0600));
    return sync_path(folder.path().parent_path());  // the folder itself may be as new as its files
}

Status remove_manifest(const SandboxFolder& folder) {
    if (::unlink(folder.manifest().c_str()) == 0) return sync_path(folder.path());
    if (errno == ENOENT || errno == ENOTDIR) return {};
    return fail_errno(fmt::format("remove {}", folder.manifest().string()));
}

Status remove_paused(const SandboxFolder& folder) {
    GB_TRY(remove_manifest(folder));
    GB_TRY(remove_file(folder.memory()));
    return remove_file(folder.state());
}

bool is_sandbox_name(std::string_view id) {
    return !id.empty() && id.size() <= 64 && std::ranges::all_of(id, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '_';
    });
}

}  // namespace gb
