// SPDX-License-Identifier: Apache-2.0
#include "node/zstd_stream.h"

#include <algorithm>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <zstd.h>

namespace gb {
namespace {

constexpr int kWindowLog = 26;  // 64 MiB; the levels below 20 use at most 8

}  // namespace

struct ZstdWriter::State {
    ZSTD_CCtx* context = ZSTD_createCCtx();
    std::vector<char> out = std::vector<char>(ZSTD_CStreamOutSize());
    ~State() { ZSTD_freeCCtx(context); }
};

ZstdWriter::ZstdWriter(int level, ByteSink sink) : state_(std::make_unique<State>()), sink_(std::move(sink)) {
    ZSTD_CCtx_setParameter(state_->context, ZSTD_c_compressionLevel, level);
    ZSTD_CCtx_setParameter(state_->context, ZSTD_c_checksumFlag, 1);
    // An error of a library that was built without threads; then it is one.
    (void)ZSTD_CCtx_setParameter(state_->context, ZSTD_c_nbWorkers,
                                 static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 64U)));
}

ZstdWriter::~ZstdWriter() = default;

Status ZstdWriter::run(std::string_view bytes, int directive) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    for (;;) {
        ZSTD_outBuffer out{state_->out.data(), state_->out.size(), 0};
        const std::size_t left =
            ZSTD_compressStream2(state_->context, &out, &in, static_cast<ZSTD_EndDirective>(directive));
        if (ZSTD_isError(left) != 0)
            return fail(ErrorCode::resource_exhausted, fmt::format("compress: {}", ZSTD_getErrorName(left)));
        if (out.pos > 0) GB_TRY(sink_({state_->out.data(), out.pos}));
        if (directive == ZSTD_e_end ? left == 0 : in.pos == in.size) return {};
    }
}

Status ZstdWriter::write(std::string_view bytes) {
    return run(bytes, ZSTD_e_continue);
}

Status ZstdWriter::finish() {
    return run({}, ZSTD_e_end);
}

struct ZstdReader::State {
    ZSTD_DCtx* context = ZSTD_createDCtx();
    std::vector<char> out = std::vector<char>(ZSTD_DStreamOutSize());
    ~State() { ZSTD_freeDCtx(context); }
};

ZstdReader::ZstdReader(ByteSink sink) : state_(std::make_unique<State>()), sink_(std::move(sink)) {
    ZSTD_DCtx_setParameter(state_->context, ZSTD_d_windowLogMax, kWindowLog);
}

ZstdReader::~ZstdReader() = default;

Status ZstdReader::feed(std::string_view bytes) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    bool more = false;  // the output was full: there may be more of it without more input
    while (in.pos < in.size || more) {
        if (ended_) return fail(ErrorCode::data_loss, "something follows the end of the compressed data");
        ZSTD_outBuffer out{state_->out.data(), state_->out.size(), 0};
        const std::size_t wanted = ZSTD_decompressStream(state_->context, &out, &in);
        if (ZSTD_isError(wanted) != 0)
            return fail(ErrorCode::data_loss, fmt::format("decompress: {}", ZSTD_getErrorName(wanted)));
        if (out.pos > 0) GB_TRY(sink_({state_->out.data(), out.pos}));
        ended_ = wanted == 0;
        more = !ended_ && out.pos == out.size;
    }
    return {};
}

}  // namespace gb
