// SPDX-License-Identifier: Apache-2.0
// Passes an answer on and notes what it was: adds the request's id to it, keeps its status.
#pragma once

#include <string>

#include "http/server.h"

namespace gb::api {

class RecordedResponse final : public http::ResponseWriter {
  public:
    RecordedResponse(http::ResponseWriter& next, std::string request_id)
        : next_(next), request_id_(std::move(request_id)) {}

    http::awaitable<Status> send(int status, http::Headers headers, std::string_view body) override {
        return next_.send(status, tag(status, std::move(headers)), body);
    }
    http::awaitable<Status> start(int status, http::Headers headers, std::optional<std::uint64_t> length) override {
        return next_.start(status, tag(status, std::move(headers)), length);
    }
    http::awaitable<Status> write(std::string_view piece) override { return next_.write(piece); }
    http::awaitable<Status> write_file(int fd, std::uint64_t length) override { return next_.write_file(fd, length); }
    http::awaitable<Status> finish() override { return next_.finish(); }
    http::awaitable<Result<std::shared_ptr<http::Stream>>> upgrade(http::ResponseHead head, std::string& early) override {
        return next_.upgrade(std::move(head), early);
    }
    [[nodiscard]] bool started() const override { return next_.started(); }
    http::awaitable<void> peer_closed() override { return next_.peer_closed(); }
    void abort() override { next_.abort(); }

    [[nodiscard]] int status() const { return status_; }  // 0: not answered
    [[nodiscard]] const std::string& request_id() const { return request_id_; }

  private:
    http::Headers tag(int status, http::Headers headers) {
        status_ = status;
        headers.set("X-Request-Id", request_id_);
        return headers;
    }

    http::ResponseWriter& next_;
    std::string request_id_;
    int status_ = 0;
};

}  // namespace gb::api
