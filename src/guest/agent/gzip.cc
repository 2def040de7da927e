// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/gzip.h"

#include <array>
#include <new>

#include <fmt/format.h>
#include <zlib.h>

namespace gb::agent {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib: the largest window, gzip framing only
using Chunk = std::array<char, 65536>;

z_const Bytef* input_of(std::string_view piece) {
    return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(piece.data()));
}

}  // namespace

struct Inflater::Impl {
    z_stream stream{};
    bool begun = false;
    bool at_end = false;  // behind a whole member; another may follow
    Chunk out;
};

Inflater::Inflater() : impl_(std::make_unique<Impl>()) {
    if (::inflateInit2(&impl_->stream, kGzipWindow) != Z_OK) throw std::bad_alloc();
}

Inflater::~Inflater() {
    ::inflateEnd(&impl_->stream);
}

Status Inflater::feed(std::string_view piece, const DataSink& sink) {
    z_stream& z = impl_->stream;
    z.next_in = input_of(piece);
    z.avail_in = static_cast<uInt>(piece.size());
    while (z.avail_in > 0 || z.avail_out == 0) {
        if (impl_->at_end) {
            if (z.avail_in == 0) break;
            ::inflateReset(&z);
            impl_->at_end = false;
        }
        impl_->begun = true;
        z.next_out = reinterpret_cast<Bytef*>(impl_->out.data());
        z.avail_out = static_cast<uInt>(impl_->out.size());
        const int rc = ::inflate(&z, Z_NO_FLUSH);
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            return fail(ErrorCode::invalid_argument, "body is not valid gzip");
        const std::size_t produced = impl_->out.size() - z.avail_out;
        if (produced > 0) GB_TRY(sink(std::string_view(impl_->out.data(), produced)));
        if (rc == Z_STREAM_END) impl_->at_end = true;
        if (rc == Z_BUF_ERROR) break;  // no progress without more input
    }
    return {};
}

Status Inflater::finish() const {
    if (impl_->begun && impl_->at_end) return {};
    return fail(ErrorCode::invalid_argument, "gzip body ends early");
}

struct Deflater::Impl {
    z_stream stream{};

    std::string run(std::string_view piece, int flush) {
        stream.next_in = input_of(piece);
        stream.avail_in = static_cast<uInt>(piece.size());
        std::string out;
        Chunk chunk;
        do {
            stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
            stream.avail_out = static_cast<uInt>(chunk.size());
            ::deflate(&stream, flush);
            out.append(chunk.data(), chunk.size() - stream.avail_out);
        } while (stream.avail_out == 0);
        return out;
    }
};

Deflater::Deflater() : impl_(std::make_unique<Impl>()) {
    if (::deflateInit2(&impl_->stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        throw std::bad_alloc();
}

Deflater::~Deflater() {
    ::deflateEnd(&impl_->stream);
}

std::string Deflater::feed(std::string_view piece) {
    return impl_->run(piece, Z_NO_FLUSH);
}

std::string Deflater::finish() {
    return impl_->run({}, Z_FINISH);
}

Result<std::string> gunzip(std::string_view data, std::size_t limit) {
    std::string out;
    Inflater inflater;
    GB_TRY(inflater.feed(data, [&](std::string_view piece) -> Status {
        if (out.size() + piece.size() > limit)
            return fail(ErrorCode::too_large, fmt::format("message unpacks to more than {} bytes", limit));
        out.append(piece);
        return {};
    }));
    GB_TRY(inflater.finish());
    return out;
}

std::string gzip(std::string_view data) {
    Deflater deflater;
    std::string out = deflater.feed(data);
    return out + deflater.finish();
}

}  // namespace gb::agent
