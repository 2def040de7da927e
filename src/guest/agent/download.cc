// SPDX-License-Identifier: Apache-2.0
// GET /files.
//
// A length in the head of an answer is a promise, and a file may be cut while it is read, or may never have had
// the length that stat tells. So an answer promises:
// - of what is small, the bytes that it has in hand: they are read before the head goes out;
// - of a large file that nobody has open for writing, the length it has. That is the fast way: the kernel moves
//   the bytes, here and on the host, and clients see how far they are. Should somebody cut the file in the middle
//   all the same, the answer is cut too, for everyone to see;
// - of all other files nothing: they are sent in chunks as they are read, and end where the reading ends. Of one
//   that grows, what was there when the request came: a log that grows faster than it is sent would never end;
// - of a large range its length in any case, as an answer to a range has no other form.
#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include "guest/agent/conditional.h"
#include "guest/agent/file_source.h"
#include "guest/agent/files_http.h"
#include "guest/agent/gzip.h"
#include "guest/agent/http_values.h"
#include "guest/agent/paths.h"

namespace gb::agent {
namespace {

constexpr std::size_t kAtOnce = 256 * 1024;  // what is small; a download holds that much memory
constexpr std::size_t kPiece = 64 * 1024;
constexpr std::uint64_t kNoEnd = UINT64_MAX;

// What has been read before the head.
struct Opening {
    std::string bytes;
    bool all = false;  // nothing comes behind them
};

// `wanted`: how many bytes from `first`, kNoEnd for all that there are.
Result<Opening> read_opening(const FileSource& source, std::uint64_t first, std::uint64_t wanted) {
    if (first > 0 && ::lseek(source.fd.get(), static_cast<off_t>(first), SEEK_SET) < 0)
        return fail_errno(fmt::format("seek in '{}'", source.path));
    if (wanted > kAtOnce && wanted != kNoEnd) return Opening{};  // nothing is gained by reading ahead
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, kAtOnce));
    GB_TRY_ASSIGN(std::string bytes, source.read(most));
    const bool all = bytes.size() < most || most == wanted;
    return Opening{std::move(bytes), all};
}

class Download {
  public:
    Download(Exchange& exchange, FileSource source)
        : exchange_(exchange),
          asked_(exchange.head.headers),
          source_(std::move(source)),
          zipped_(prefers_gzip(asked_.get("Accept-Encoding"))) {}

    awaitable<void> run() {
        if (!zipped_ && !accepts_coding(asked_.get("Accept-Encoding"), "identity")) {
            co_await reply_error(exchange_, 406,
                                 "no acceptable content encoding: identity and gzip are there");
            co_return;
        }
        const FileVersion version =
            source_.lengths == Lengths::unknown ? FileVersion{} : version_of(source_.info);
        headers_ = file_headers(version);
        switch (check_conditions(asked_, version)) {
            case Condition::failed:
                co_await reply_error(exchange_, 412, "the file is another version than the one asked for");
                co_return;
            case Condition::not_modified:
                co_await exchange_.response.send(304, std::move(headers_), {});
                co_return;
            case Condition::met:
                break;
        }
        // Packed bytes cannot be counted before they are made.
        const bool ranged = !zipped_ && range_applies(asked_, version);
        co_await answer(ranged ? std::string(asked_.get("Range")) : std::string());
    }

  private:
    http::Headers file_headers(const FileVersion& version) const {
        const std::string name(base_name(source_.path));
        http::Headers headers = reply_headers(exchange_, content_type_of(name));
        headers.add("Content-Disposition", content_disposition(name));
        if (version.modified) headers.add("Last-Modified", http_date(*version.modified));
        headers.add("Vary", "Accept-Encoding");
        // The packed bytes are another representation of the same version.
        if (!version.etag.empty()) headers.add("ETag", (zipped_ ? "W/" : "") + version.etag);
        if (zipped_) headers.add("Content-Encoding", "gzip");
        return headers;
    }

    awaitable<void> answer(std::string range_header) {
        const auto size = source_.size();
        std::optional<ByteRange> range;
        if (size && *size > 0) {  // an empty file has no ranges to refuse
            const auto parsed = parse_range(range_header, *size);
            if (!parsed) {
                co_await refuse_range(*size);
                co_return;
            }
            range = *parsed;
        }
        const std::uint64_t first = range ? range->first : 0;
        const std::uint64_t wanted = range                                ? range->last - first + 1
                                     : source_.lengths == Lengths::exact ? *size
                                                                         : kNoEnd;
        auto opening = read_opening(source_, first, wanted);
        if (!opening) {
            co_await reply_error(exchange_, opening.error());
            co_return;
        }
        if (!opening->all) {
            if (range)
                co_await send_range(*range, *size);
            else
                co_await send_large(std::move(opening->bytes), wanted);
            co_return;
        }
        if (range)
            co_await send_known_range(first, std::move(opening->bytes), wanted);
        else
            co_await send_known(range_header, std::move(opening->bytes));
    }

    awaitable<void> refuse_range(std::uint64_t size) {
        headers_.set("Content-Range", fmt::format("bytes */{}", size));
        headers_.set("Content-Type", "application/json");
        co_await exchange_.response.send(416, std::move(headers_),
                                         R"({"code":416,"message":"range not satisfiable"})");
    }

    void mark_range(std::uint64_t first, std::uint64_t length, std::uint64_t size) {
        headers_.set("Accept-Ranges", "bytes");
        headers_.add("Content-Range", fmt::format("bytes {}-{}/{}", first, first + length - 1, size));
    }

    // The whole file.
    awaitable<void> send_known(std::string_view range_header, std::string bytes) {
        headers_.set("Accept-Ranges", zipped_ ? "none" : "bytes");
        if (zipped_) bytes = gzip(bytes);
        // A range of a file whose length stat tells does not come here.
        const bool ranged = !source_.size() && !bytes.empty();
        const auto range = parse_range(ranged ? range_header : "", bytes.size());
        if (!range) {
            co_await refuse_range(bytes.size());
        } else if (*range) {
            const std::uint64_t length = (*range)->last - (*range)->first + 1;
            mark_range((*range)->first, length, bytes.size());
            co_await exchange_.response.send(206, std::move(headers_),
                                             std::string_view(bytes).substr((*range)->first, length));
        } else {
            co_await exchange_.response.send(200, std::move(headers_), bytes);
        }
    }

    // The bytes of a range; fewer than wanted when the file has been cut, which then ends behind them.
    awaitable<void> send_known_range(std::uint64_t first, std::string bytes, std::uint64_t wanted) {
        const bool is_cut = bytes.size() < wanted;
        if (bytes.empty()) {
            struct stat now{};
            co_await refuse_range(::fstat(source_.fd.get(), &now) == 0
                                      ? static_cast<std::uint64_t>(now.st_size)
                                      : 0);
            co_return;
        }
        mark_range(first, bytes.size(), is_cut ? first + bytes.size() : *source_.size());
        co_await exchange_.response.send(206, std::move(headers_), bytes);
    }

    awaitable<void> send_range(ByteRange range, std::uint64_t size) {
        const std::uint64_t length = range.last - range.first + 1;
        mark_range(range.first, length, size);
        co_await send_with_length(206, length);
    }

    awaitable<void> send_with_length(int status, std::uint64_t length) {
        if (!co_await exchange_.response.start(status, std::move(headers_), length)) co_return;
        if (co_await exchange_.response.write_file(source_.fd.get(), length))
            co_await exchange_.response.finish();
    }

    awaitable<void> send_large(std::string opening, std::uint64_t wanted) {
        const bool is_head = exchange_.head.method == "HEAD";
        const bool ranges = source_.size() && !zipped_;
        headers_.set("Accept-Ranges", ranges ? "bytes" : "none");
        if (!zipped_ && source_.lengths == Lengths::exact && (is_head || source_.is_at_rest())) {
            co_await send_with_length(200, wanted);
            co_return;
        }
        if (!co_await exchange_.response.start(200, std::move(headers_))) co_return;
        if (is_head || co_await send_as_read(std::move(opening), wanted))
            co_await exchange_.response.finish();
    }

    // What has been read already, and what comes behind it, until there are `wanted` bytes or no more.
    awaitable<bool> send_as_read(std::string piece, std::uint64_t wanted) {
        std::optional<Deflater> deflater;
        if (zipped_) deflater.emplace();
        std::uint64_t read = 0;
        for (;;) {
            read += piece.size();
            const std::string out = deflater ? deflater->feed(piece) : std::move(piece);
            if (!out.empty() && !co_await exchange_.response.write(out)) co_return false;
            auto more = source_.read(
                static_cast<std::size_t>(std::min<std::uint64_t>(wanted - read, kPiece)));
            if (!more) {
                exchange_.response.abort();
                co_return false;
            }
            if (more->empty()) break;
            piece = *std::move(more);
        }
        if (deflater && !co_await exchange_.response.write(deflater->finish())) co_return false;
        co_return true;
    }

    Exchange& exchange_;
    const http::Headers& asked_;
    FileSource source_;
    bool zipped_;
    http::Headers headers_;
};

}  // namespace

awaitable<void> FilesHttp::download(Exchange& exchange) {
    const auto caller = identify(exchange.head, exchange.target.get("username"), settings_, users_);
    if (!caller) {
        co_await reply_error(exchange, caller.error());
        co_return;
    }
    const auto path = resolve_file_path(exchange.target.get("path"), settings_, *caller->user);
    Result<FileSource> source = path ? FileSource::open(*path) : std::unexpected(path.error());
    if (!source) {
        co_await reply_error(exchange, source.error());
        co_return;
    }
    Download download(exchange, *std::move(source));
    co_await download.run();
}

}  // namespace gb::agent
