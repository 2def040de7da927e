// SPDX-License-Identifier: Apache-2.0
// GET /files.
#include <array>
#include <cerrno>

#include <sys/stat.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "guest/agent/conditional.h"
#include "guest/agent/files_http.h"
#include "guest/agent/gzip.h"
#include "guest/agent/http_values.h"

namespace gb::agent {
namespace {

constexpr std::size_t kPiece = 64 * 1024;

struct Source {
    UniqueFd fd;
    struct stat info{};
    std::string path;
};

Result<Source> open_source(const std::string& path) {
    Source source{.path = path};
    // O_NONBLOCK: opening a pipe would wait for its other end.
    source.fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!source.fd) {
        if (errno == ENOENT || errno == ENOTDIR)
            return fail(ErrorCode::not_found, fmt::format("path '{}' does not exist", path));
        if (errno == ENXIO)  // a socket, or a pipe
            return fail(ErrorCode::invalid_argument, fmt::format("path '{}' is not a regular file", path));
        return fail_errno(fmt::format("open '{}'", path));
    }
    if (::fstat(source.fd.get(), &source.info) != 0) return fail_errno(fmt::format("stat '{}'", path));
    if (S_ISDIR(source.info.st_mode))
        return fail(ErrorCode::invalid_argument, fmt::format("path '{}' is a directory", path));
    if (!S_ISREG(source.info.st_mode))
        return fail(ErrorCode::invalid_argument, fmt::format("path '{}' is not a regular file", path));
    return source;
}

Result<std::size_t> read_some(int fd, std::array<char, kPiece>& buffer) {
    for (;;) {
        const ssize_t n = ::read(fd, buffer.data(), buffer.size());
        if (n >= 0) return static_cast<std::size_t>(n);
        if (errno != EINTR) return fail_errno("read");
    }
}

awaitable<void> send_to_end(Exchange& exchange, int fd, std::string_view first, bool zipped) {
    auto buffer = std::make_unique<std::array<char, kPiece>>();
    std::optional<Deflater> deflater;
    if (zipped) deflater.emplace();
    std::string out = zipped ? deflater->feed(first) : std::string(first);
    for (;;) {
        if (!out.empty() && !co_await exchange.response.write(out)) co_return;
        const auto n = read_some(fd, *buffer);
        if (!n) {
            exchange.response.abort();
            co_return;
        }
        if (*n == 0) break;
        const std::string_view piece(buffer->data(), *n);
        out = zipped ? deflater->feed(piece) : std::string(piece);
    }
    if (zipped) co_await exchange.response.write(deflater->finish());
    co_await exchange.response.finish();
}

http::Headers file_headers(const Exchange& exchange, const Source& source) {
    const std::string name(base_name(source.path));
    http::Headers headers = reply_headers(exchange, content_type_of(name));
    headers.add("Content-Disposition", content_disposition(name));
    headers.add("Last-Modified", http_date(source.info.st_mtim.tv_sec));
    headers.add("Accept-Ranges", "bytes");
    headers.add("Vary", "Accept-Encoding");
    return headers;
}

// From the current position; a file that has become shorter cuts the connection.
awaitable<void> send_bytes(Exchange& exchange, int status, http::Headers headers, int fd,
                           std::uint64_t length) {
    if (!co_await exchange.response.start(status, std::move(headers), length)) co_return;
    if (co_await exchange.response.write_file(fd, length)) co_await exchange.response.finish();
}

awaitable<void> send_range(Exchange& exchange, const Source& source, ByteRange range, http::Headers headers) {
    headers.add("Content-Range", fmt::format("bytes {}-{}/{}", range.first, range.last, source.info.st_size));
    ::lseek(source.fd.get(), static_cast<off_t>(range.first), SEEK_SET);
    co_await send_bytes(exchange, 206, std::move(headers), source.fd.get(), range.last - range.first + 1);
}

awaitable<void> send_zipped(Exchange& exchange, const Source& source, http::Headers headers) {
    headers.add("Content-Encoding", "gzip");
    headers.set("Accept-Ranges", "none");
    if (co_await exchange.response.start(200, std::move(headers)))
        co_await send_to_end(exchange, source.fd.get(), {}, true);
}

awaitable<void> send_file(Exchange& exchange, Source source) {
    const http::Headers& asked = exchange.head.headers;
    const std::string_view codings = asked.get("Accept-Encoding");
    const bool zipped = prefers_gzip(codings);
    if (!zipped && !accepts_coding(codings, "identity")) {
        co_await reply_error(exchange, 406, "no acceptable content encoding: identity and gzip are there");
        co_return;
    }
    const FileVersion version = version_of(source.info);
    http::Headers headers = file_headers(exchange, source);
    // The packed bytes are another representation of the same version.
    headers.add("ETag", (zipped ? "W/" : "") + version.etag);
    switch (check_conditions(asked, version)) {
        case Condition::failed:
            co_await reply_error(exchange, 412, "the file is another version than the one asked for");
            co_return;
        case Condition::not_modified:
            co_await exchange.response.send(304, std::move(headers), {});
            co_return;
        case Condition::met:
            break;
    }
    if (zipped) {
        co_await send_zipped(exchange, source, std::move(headers));
        co_return;
    }
    const int fd = source.fd.get();
    const auto size = static_cast<std::uint64_t>(source.info.st_size);
    if (size == 0) {
        // Files of /proc say that they are empty and are not.
        auto buffer = std::make_unique<std::array<char, kPiece>>();
        const auto n = read_some(fd, *buffer);
        if (!n || *n == 0) {
            co_await exchange.response.send(200, std::move(headers), {});
            co_return;
        }
        const std::string first(buffer->data(), *n);
        if (co_await exchange.response.start(200, std::move(headers)))
            co_await send_to_end(exchange, fd, first, false);
        co_return;
    }
    const auto range = parse_range(range_applies(asked, version) ? asked.get("Range") : "", size);
    if (!range) {
        headers.set("Content-Range", fmt::format("bytes */{}", size));
        headers.set("Content-Type", "application/json");
        co_await exchange.response.send(416, std::move(headers),
                                        R"({"code":416,"message":"range not satisfiable"})");
        co_return;
    }
    if (*range) {
        co_await send_range(exchange, source, **range, std::move(headers));
        co_return;
    }
    co_await send_bytes(exchange, 200, std::move(headers), fd, size);
}

}  // namespace

awaitable<void> FilesHttp::download(Exchange& exchange) {
    const auto caller = identify(exchange.head, exchange.target.get("username"), settings_, users_);
    if (!caller) {
        co_await reply_error(exchange, caller.error());
        co_return;
    }
    const auto path = resolve_file_path(exchange.target.get("path"), settings_, *caller->user);
    Result<Source> source = path ? open_source(*path) : std::unexpected(path.error());
    if (source)
        co_await send_file(exchange, *std::move(source));
    else
        co_await reply_error(exchange, source.error());
}

}  // namespace gb::agent
