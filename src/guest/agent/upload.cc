// SPDX-License-Identifier: Apache-2.0
// POST /files: one raw file, or a form with several.
#include <optional>
#include <set>

#include <sys/stat.h>

#include <fmt/format.h>

#include "guest/agent/files_http.h"
#include "guest/agent/gzip.h"
#include "guest/agent/multipart.h"
#include "guest/agent/upload_file.h"
#include "guest/agent/write_info.h"

namespace gb::agent {
namespace {

struct Uploader {
    const Settings& settings;
    const User& owner;
    Metadata metadata;
    std::optional<std::string> fixed_path;  // of the query; then there is just one file
    std::set<std::string> paths;            // done in this request

    Result<UploadFile> begin(const std::string& path) {
        GB_TRY_ASSIGN(const std::string resolved, resolve_file_path(path, settings, owner));
        if (!paths.insert(resolved).second)
            return fail(ErrorCode::invalid_argument,
                        fmt::format("you cannot upload multiple files to the same path '{}'", resolved));
        return UploadFile::create(resolved, owner);
    }
};

class FormSink final : public PartSink {
  public:
    explicit FormSink(Uploader& uploader) : uploader_(uploader) {}

    Status begin_part(const HeaderValue& disposition) override {
        const std::string* field = disposition.find("name");
        if (field == nullptr || *field != "file") return {};  // some other field of the form
        const std::optional<std::string> file_name = form_file_name(disposition);
        if (uploader_.fixed_path) {
            if (!uploader_.paths.empty())
                return fail(ErrorCode::invalid_argument, "path: with it exactly one file can be uploaded");
            return open(*uploader_.fixed_path);
        }
        if (!file_name || file_name->empty())
            return fail(ErrorCode::invalid_argument,
                        "file: a part without a file name needs the path parameter");
        return open(*file_name);
    }

    Status part_data(std::string_view data) override { return file_ ? file_->write(data) : Status{}; }

    Status end_part() override {
        if (!file_) return {};
        const Status committed = file_->commit(uploader_.metadata);
        if (committed) written_.push_back(file_->path());
        file_.reset();
        return committed;
    }

    [[nodiscard]] const std::vector<std::string>& written() const { return written_; }

  private:
    Status open(const std::string& path) {
        auto file = uploader_.begin(path);
        if (!file) return std::unexpected(file.error());
        file_.emplace(*std::move(file));
        return {};
    }

    Uploader& uploader_;
    std::optional<UploadFile> file_;
    std::vector<std::string> written_;
};

// Passes the body on, unpacked if need be.
awaitable<Status> read_body(Exchange& exchange, const DataSink& sink) {
    const std::string_view coding = exchange.head.headers.get("Content-Encoding");
    std::optional<Inflater> inflater;
    if (coding == "gzip")
        inflater.emplace();
    else if (!coding.empty() && coding != "identity")
        co_return fail(ErrorCode::invalid_argument,
                       fmt::format("content encoding '{}' is not supported", coding));
    for (;;) {
        GB_CO_TRY_ASSIGN(const std::string_view piece, co_await exchange.body.next());
        if (piece.empty()) break;
        GB_CO_TRY(inflater ? inflater->feed(piece, sink) : sink(piece));
    }
    if (inflater) GB_CO_TRY(inflater->finish());
    co_return Status{};
}

awaitable<Result<std::vector<std::string>>> receive_form(Exchange& exchange, Uploader& uploader,
                                                         const std::string& boundary) {
    FormSink sink(uploader);
    MultipartParser parser(boundary, sink);
    const DataSink feed = [&](std::string_view piece) { return parser.feed(piece); };
    GB_CO_TRY(co_await read_body(exchange, feed));
    GB_CO_TRY(parser.finish());
    if (sink.written().empty())
        co_return fail(ErrorCode::invalid_argument, "file: the form holds no such field");
    co_return sink.written();
}

awaitable<Result<std::vector<std::string>>> receive_raw(Exchange& exchange, Uploader& uploader) {
    if (!uploader.fixed_path)
        co_return fail(ErrorCode::invalid_argument, "path: required for an application/octet-stream upload");
    GB_CO_TRY_ASSIGN(UploadFile file, uploader.begin(*uploader.fixed_path));
    const DataSink write = [&](std::string_view piece) { return file.write(piece); };
    GB_CO_TRY(co_await read_body(exchange, write));
    GB_CO_TRY(file.commit(uploader.metadata));
    std::vector<std::string> written{file.path()};
    co_return written;
}

awaitable<Result<std::vector<std::string>>> receive(Exchange& exchange, Uploader& uploader) {
    GB_CO_TRY_ASSIGN(uploader.metadata, metadata_headers(exchange.head.headers));
    const HeaderValue type = parse_header_value(exchange.head.headers.get("Content-Type"));
    if (type.value == "application/octet-stream") co_return co_await receive_raw(exchange, uploader);
    if (type.value != "multipart/form-data")
        co_return fail(ErrorCode::invalid_argument,
                       "Content-Type: multipart/form-data or application/octet-stream is needed");
    const std::string* boundary = type.find("boundary");
    if (boundary == nullptr || boundary->empty() || boundary->size() > 200)
        co_return fail(ErrorCode::invalid_argument,
                       "Content-Type: multipart/form-data without a usable boundary");
    co_return co_await receive_form(exchange, uploader, *boundary);
}

}  // namespace

void FilesHttp::log_written(const std::string& path, const std::string& user) {
    struct stat st{};
    const bool there = ::stat(path.c_str(), &st) == 0;
    log_.add(TelemetryLog::Level::info, "filesystem", fmt::format("uploaded: {}", path),
             {{"path", path}, {"size", there ? std::to_string(st.st_size) : ""}, {"user", user}});
}

awaitable<void> FilesHttp::upload(Exchange& exchange) {
    const auto caller = identify(exchange.head, exchange.target.get("username"), settings_, users_);
    if (!caller) {
        co_await reply_error(exchange, caller.error());
        co_return;
    }
    Uploader uploader{settings_, *caller->user, {}, {}, {}};
    if (const std::string* path = exchange.target.find("path"); path != nullptr && !path->empty())
        uploader.fixed_path = *path;
    const auto written = co_await receive(exchange, uploader);
    if (!written) {
        co_await discard_body(exchange);
        co_await reply_error(exchange, written.error());
        co_return;
    }
    std::string body = "[";
    for (const std::string& path : *written) {
        if (body.size() > 1) body += ",";
        body += write_info(path, uploader.metadata);
        log_written(path, caller->user->name);
    }
    co_await reply_json(exchange, 200, body + "]");
}

}  // namespace gb::agent
