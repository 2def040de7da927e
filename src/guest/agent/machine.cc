// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/machine.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

#include <linux/fs.h>
#include <linux/random.h>
#include <sys/ioctl.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

namespace gb::agent {
namespace {

constexpr std::int64_t kClockTolerance = 10;  // milliseconds
constexpr std::string_view kHostMark = "# glovebox";

void report(std::string_view what, const Status& status) {
    if (!status) log::warn(what, {{"error", status.error().message}});
}

}  // namespace

void prepare_machine(const InitRequest& request) {
    if (request.timestamp_ms) report("clock not set", set_clock(*request.timestamp_ms));
    if (request.entropy && !request.entropy->empty())
        report("no entropy added", add_entropy(*request.entropy));
    if (request.hostname) report("host name not set", set_hostname(*request.hostname));
}

Status set_clock(std::int64_t unix_ms) {
    if (std::llabs(now_ms() - unix_ms) <= kClockTolerance) return {};
    const timespec time{unix_ms / 1000, (unix_ms % 1000) * 1'000'000};
    if (::clock_settime(CLOCK_REALTIME, &time) != 0) return fail_errno("set the clock");
    return {};
}

Status add_entropy(std::string_view bytes) {
    GB_TRY_ASSIGN(const UniqueFd fd, open_file("/dev/urandom", O_RDWR));
    GB_TRY(write_all(fd.get(), bytes));
    // rand_pool_info ends in a flexible array; a buffer of ints has its alignment.
    std::vector<int> buffer((sizeof(rand_pool_info) + bytes.size()) / sizeof(int) + 1);
    const int header[2] = {static_cast<int>(bytes.size() * 8), static_cast<int>(bytes.size())};
    std::memcpy(buffer.data(), header, sizeof header);
    std::memcpy(reinterpret_cast<char*>(buffer.data()) + sizeof header, bytes.data(), bytes.size());
    if (::ioctl(fd.get(), RNDADDENTROPY, buffer.data()) != 0) return fail_errno("add entropy");
    // Readers use a generator that is seeded from the pool now and then: seed it now.
    if (::ioctl(fd.get(), RNDRESEEDCRNG) != 0) return fail_errno("reseed the random generator");
    return {};
}

namespace {

constexpr std::chrono::seconds kLongestFreeze{60};
std::atomic<unsigned> g_freezes{0};  // the kernel's state of one file system, of which a machine has one

}  // namespace

Status freeze_disk() {
    GB_TRY_ASSIGN(const UniqueFd root, open_file("/", O_RDONLY | O_DIRECTORY));
    if (::ioctl(root.get(), FIFREEZE, 0) != 0) return fail_errno("freeze the disk");
    // Not on the agent's loop: that may be waiting for the disk.
    std::thread([mine = ++g_freezes] {
        std::this_thread::sleep_for(kLongestFreeze);
        if (g_freezes == mine) report("disk not thawed", thaw_disk());
    }).detach();
    return {};
}

Status thaw_disk() {
    GB_TRY_ASSIGN(const UniqueFd root, open_file("/", O_RDONLY | O_DIRECTORY));
    if (::ioctl(root.get(), FITHAW, 0) != 0 && errno != EINVAL) return fail_errno("thaw the disk");
    return {};
}

std::string with_host_line(std::string_view hosts, std::string_view name) {
    std::string out;
    while (!hosts.empty()) {
        const std::size_t end = std::min(hosts.size(), hosts.find('\n'));
        const std::string_view line = hosts.substr(0, end);
        hosts.remove_prefix(std::min(hosts.size(), end + 1));
        if (!line.ends_with(kHostMark)) out.append(line).push_back('\n');
    }
    return out + fmt::format("127.0.1.1 {} {}\n", name, kHostMark);
}

Status set_hostname(const std::string& name) {
    if (::sethostname(name.data(), name.size()) != 0) return fail_errno("set the host name");
    return {};
}

Status add_to_hosts(const std::string& name) {
    const std::string before = read_file("/etc/hosts").value_or("127.0.0.1 localhost\n::1 localhost\n");
    const std::string after = with_host_line(before, name);
    if (after == before) return {};
    // Not by rename: the file may be a mount point.
    GB_TRY_ASSIGN(const UniqueFd fd, open_file("/etc/hosts", O_WRONLY | O_CREAT | O_TRUNC, 0644));
    return write_all(fd.get(), after);
}

}  // namespace gb::agent
