// SPDX-License-Identifier: Apache-2.0
#include "guest/init/trial.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "guest/init/console.h"

namespace gb::init {
namespace {

constexpr std::size_t kWords = std::size_t{4} << 17;  // 4 MiB
constexpr std::size_t kWordsOfAPage = 512;
constexpr std::size_t kChangedPages = 64;  // in each round
constexpr std::size_t kBlock = 4096;
constexpr std::uint64_t kBlocks = 16;
constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 20'000'000};

std::uint64_t sum_of(std::span<const std::uint64_t> words) {
    std::uint64_t sum = 0;
    for (std::uint64_t word : words) sum = sum * 31 + word;
    return sum;
}

struct Free {
    void operator()(void* memory) const { std::free(memory); }
};

// Past the guest's page cache, so that it is the machine's disk that is read and written.
class Disk {
  public:
    explicit Disk(const char* path) : block_(static_cast<char*>(std::aligned_alloc(kBlock, kBlock))) {
        if (auto fd = open_file(path, O_RDWR | O_DIRECT | O_SYNC)) fd_ = *std::move(fd);
    }
    bool write(std::uint64_t round) {
        std::memset(block_.get(), 0, kBlock);
        std::memcpy(block_.get(), &round, sizeof round);
        return ::pwrite(fd_.get(), block_.get(), kBlock, place(round)) == kBlock;
    }
    bool holds(std::uint64_t round) {
        std::uint64_t found = 0;
        if (::pread(fd_.get(), block_.get(), kBlock, place(round)) != kBlock) return false;
        std::memcpy(&found, block_.get(), sizeof found);
        return found == round;
    }

  private:
    static off_t place(std::uint64_t round) { return static_cast<off_t>(round % kBlocks * kBlock); }
    UniqueFd fd_;
    std::unique_ptr<char, Free> block_;
};

}  // namespace

void run_trial(const char* path) {
    std::vector<std::uint64_t> words(kWords);
    std::uint64_t state = static_cast<std::uint64_t>(monotonic_ms());
    for (std::uint64_t& word : words) word = state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    std::uint64_t sum = sum_of(words);
    Disk disk(path);
    std::int64_t last_ms = monotonic_ms();
    for (std::uint64_t round = 1;; ++round) {
        const char* what = "ok";
        if (sum_of(words) != sum) what = "memory";
        if (round > 1 && !disk.holds(round - 1)) what = "disk";
        for (std::size_t i = 0; i < kChangedPages; ++i)
            words[(round * kChangedPages + i) * kWordsOfAPage % kWords] += round;
        sum = sum_of(words);
        if (!disk.write(round)) what = "disk";
        ::nanosleep(&kPause, nullptr);
        const std::int64_t now = monotonic_ms();
        if (now <= last_ms) what = "clock";
        last_ms = now;
        say_plain("glovebox-trial: " + std::to_string(round) + " " + std::to_string(now) + " " + what);
    }
}

}  // namespace gb::init
