// SPDX-License-Identifier: Apache-2.0
// Whatever the file holds, the reader hands out pages in order, once each, inside of the image, with as much
// content as they need.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/crc32c.h"
#include "engine/memory_delta.h"

namespace {

using namespace gb;
using namespace gb::engine;

const MemoryBase kBase{"fuzz", 300 * kPageBytes};

Result<DeltaReader> reader_of(std::string bytes) {
    return DeltaReader::from(
        [bytes = std::move(bytes),
         at = std::size_t{0}](std::span<std::byte> buffer) mutable -> Result<std::size_t> {
            const std::size_t n = std::min(buffer.size(), bytes.size() - at);
            std::memcpy(buffer.data(), bytes.data() + at, n);
            at += n;
            return n;
        },
        kBase);
}

void walk(std::string bytes) {
    const std::size_t size = bytes.size();
    auto reader = reader_of(std::move(bytes));
    if (!reader) return;
    std::uint64_t next = 0;
    for (;;) {
        auto block = reader->next();
        if (!block) return;
        if (!*block) break;
        std::uint64_t data = 0;
        for (const DeltaRun& run : (*block)->runs) {
            if (run.pages == 0 || run.first_page < next || run.first_page + run.pages > 300) std::abort();
            next = run.first_page + run.pages;
            if (run.kind == RunKind::data) data += run.pages;
        }
        if ((*block)->contents.size() != data * kPageBytes) std::abort();
    }
    if (reader->stats().bytes != size) std::abort();
}

// Puts the right checksums where a block, the header or the end seem to be, so that what stands behind them
// is met.
std::string repaired(std::string bytes) {
    auto crc = [&](std::size_t from, std::size_t n, std::uint32_t before = 0) {
        return crc32c(std::as_bytes(std::span(bytes)).subspan(from, n), before);
    };
    auto put = [&](std::size_t at, std::uint32_t value) { std::memcpy(bytes.data() + at, &value, 4); };
    if (bytes.size() < 64) return bytes;
    put(60, crc(0, 60));
    std::uint32_t chain = 0;
    for (std::size_t at = 64; bytes.size() - at >= 32;) {
        std::uint32_t runs = 0, pages = 0;
        std::memcpy(&runs, bytes.data() + at + 4, 4);
        std::memcpy(&pages, bytes.data() + at + 8, 4);
        const std::uint64_t rest = std::uint64_t{runs} * 16 + std::uint64_t{pages} * kPageBytes;
        if (bytes.compare(at, 4, "BLCK") != 0 || rest > bytes.size() - at - 32) {
            put(at + 28, crc(at, 28, chain));
            break;
        }
        put(at + 28, crc(at + 32, rest, crc(at, 28)));
        chain = crc(at + 28, 4, chain);
        at += 32 + rest;
    }
    return bytes;
}

std::string header() {
    // The one of a written delta; the reader's own check of the image's id needs its hash.
    static const std::string bytes = [] {
        char path[] = "/tmp/glovebox-delta-fuzz-XXXXXX";
        if (::mkdtemp(path) == nullptr) std::abort();
        const std::filesystem::path file = std::filesystem::path(path) / "d";
        auto writer = DeltaWriter::create(file, kBase);
        if (!writer || !writer->finish() || !writer->publish()) std::abort();
        std::string out(64, '\0');
        FILE* in = ::fopen(file.c_str(), "r");
        if (in == nullptr || ::fread(out.data(), 1, out.size(), in) != out.size()) std::abort();
        ::fclose(in);
        std::filesystem::remove_all(path);
        return out;
    }();
    return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string input(reinterpret_cast<const char*>(data), size);
    walk(input);
    walk(header() + input);
    walk(repaired(header() + input));
    return 0;
}
