// SPDX-License-Identifier: Apache-2.0
#include "node/machinery.h"

#include <charconv>
#include <thread>

#include <sys/file.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "base/file.h"
#include "base/ids.h"
#include "base/log.h"
#include "net/address_block.h"

namespace gb {
namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kOrphanPause{5};
constexpr int kOrphanTries = 12'000;  // a minute

bool holder_lives(int lock) {
    char text[32] = {};
    const ssize_t n = ::pread(lock, text, sizeof text - 1, 0);
    pid_t pid = 0;
    if (n <= 0 || std::from_chars(text, text + n, pid).ec != std::errc() || pid <= 0) return true;  // nobody knows
    return ::kill(pid, 0) == 0 || errno != ESRCH;
}

// A full disk must not keep a server from its start.
void note_holder(int lock) {
    const std::string text = fmt::format("{}\n", ::getpid());
    if (::ftruncate(lock, 0) == 0) [[maybe_unused]]
        const ssize_t n = ::pwrite(lock, text.data(), text.size(), 0);
}

}  // namespace

Result<UniqueFd> lock_folder(const fs::path& folder, Busy busy) {
    GB_TRY(make_dirs(folder, 0711));
    GB_TRY_ASSIGN(UniqueFd fd, open_file(folder / "lock", O_RDWR | O_CREAT));
    const auto lock = [&](int how) {
        int rc = 0;
        do rc = ::flock(fd.get(), LOCK_EX | how);
        while (rc != 0 && errno == EINTR);
        return rc == 0;
    };
    bool locked = lock(busy == Busy::refuse ? LOCK_NB : 0);
    // A server that was killed while it started a program has left its lock to that child, which lets go of it with its
    // exec: who holds it is alive only if the one is that wrote down its number.
    for (int tries = 0; !locked && tries < kOrphanTries && !holder_lives(fd.get()); ++tries) {
        std::this_thread::sleep_for(kOrphanPause);
        locked = lock(LOCK_NB);
    }
    if (locked) {
        note_holder(fd.get());
        return fd;
    }
    return fail(ErrorCode::already_exists,
                fmt::format("another server uses {}: stop it, or give this one a folder of its own with --data-dir",
                            folder.string()));
}

Result<std::string> instance_of(const fs::path& folder) {
    const fs::path file = folder / "instance";
    auto text = read_file(file);
    if (text && text->size() >= 12) return text->substr(0, 12);
    if (!text && text.error().code != ErrorCode::not_found) return std::unexpected(text.error());
    std::string made = random_id(12);
    GB_TRY(write_file_atomic(file, made + "\n", 0600));
    return made;
}

Result<Machinery> open_machinery(const fs::path& folder, const std::string& instance,
                                 const net::Ceiling& ceiling, const FindSurvivors& find) {
    Machinery out;
    out.instance = instance;
    engine::MicrovmOptions engine_options;
    engine_options.data_folder = folder;
    engine_options.instance = instance;
    GB_TRY_ASSIGN(engine_options.cgroups, engine::detect_cgroup_layout());
    GB_TRY_ASSIGN(out.engine, engine::MicrovmEngine::create(std::move(engine_options)));
    if (find) out.survivors = find(*out.engine, net::instance_tag(instance));
    net::HostNetworkOptions network_options;
    network_options.instance = instance;
    network_options.ceiling = ceiling;
    for (const Survivor& survivor : out.survivors) {
        out.keep.emplace(survivor.record.cgroup_name(), survivor.record.process.pid);
        network_options.keep.push_back(survivor.record.slot);
    }
    if (!find) GB_TRY(out.end_others());
    GB_TRY_ASSIGN(out.network, net::HostNetwork::create(std::move(network_options)));
    return out;
}

Status Machinery::end_others() const {
    std::vector<std::string> groups;
    if (Status status = engine->reclaim(&groups, keep); !status)
        return std::unexpected(status.error().with("reclaim what the previous run left"));
    if (!groups.empty()) log::warn("ended machines that the previous run left", {{"machines", groups.size()}});
    return {};
}

uid_t machine_uid(std::uint16_t instance_tag, std::size_t slot_number) {
    constexpr uid_t kFirst = 1'000'000'000;  // far from people and from the ranges that container tools take
    return kFirst + uid_t{instance_tag} * 4096 + static_cast<uid_t>(slot_number);
}

}  // namespace gb
