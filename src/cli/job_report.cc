// SPDX-License-Identifier: Apache-2.0
#include "cli/job_report.h"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/file.h"

namespace gb::cli {
namespace {

namespace json = boost::json;

bool is_utf8(std::string_view bytes) {
    // The parser of JSON is strict about what a string may hold; control characters are escaped by the
    // writer.
    const std::string quoted = json::serialize(json::string(bytes));
    boost::system::error_code ec;
    (void)json::parse(quoted, ec);
    return !ec;
}

// A failure here has nobody left to be told to.
void print(std::string_view text) {
    (void)write_all(STDOUT_FILENO, text);
}

}  // namespace

std::string segment_line(const JobSegment& segment) {
    return json::serialize(json::object{{"type", "segment"},
                                        {"number", segment.number},
                                        {"sandboxID", segment.sandbox_id},
                                        {"startedAt", segment.started_at},
                                        {"endAt", segment.ends_at}}) +
           "\n";
}

std::string output_line(std::uint64_t offset, std::string_view bytes) {
    json::object line{{"type", "output"}, {"offset", offset}};
    if (is_utf8(bytes))
        line["text"] = bytes;
    else
        line["base64"] = base64_encode(bytes);
    return json::serialize(line) + "\n";
}

std::string end_line(const JobOutcome& outcome) {
    return json::serialize(json::object{{"type", "end"},
                                        {"sandboxID", outcome.sandbox_id},
                                        {"exitCode", outcome.exit_code},
                                        {"outputBytes", outcome.output_bytes},
                                        {"segments", outcome.segments},
                                        {"sandbox", outcome.sandbox_state}}) +
           "\n";
}

void JobReport::segment(const JobSegment& segment) const {
    if (json_)
        print(segment_line(segment));
    else
        note(fmt::format("sandbox {} runs, segment {}, until {}", segment.sandbox_id, segment.number,
                         segment.ends_at));
}

Status JobReport::output(std::uint64_t offset, std::string_view bytes) const {
    return write_all(STDOUT_FILENO, json_ ? std::string_view(output_line(offset, bytes)) : bytes);
}

void JobReport::note(std::string_view text) const {
    fmt::print(stderr, "glovebox: {}\n", text);
}

void JobReport::end(const JobOutcome& outcome) const {
    if (json_) print(end_line(outcome));
    const std::string& id = outcome.sandbox_id;
    if (outcome.sandbox_state == "paused")
        note(fmt::format(
            "the job ended with {}; its sandbox {} is paused, with everything in it: look at it with "
            "any client, or end it with `glovebox sandbox kill {}`",
            outcome.exit_code, id, id));
    else if (outcome.sandbox_state == "running")
        note(fmt::format("the job ended with {}; its sandbox {} runs on", outcome.exit_code, id));
}

void JobReport::detached(const std::string& sandbox_id, std::uint64_t offset) const {
    if (json_)
        print(json::serialize(
                  json::object{{"type", "detached"}, {"sandboxID", sandbox_id}, {"offset", offset}}) +
              "\n");
    note(fmt::format("the job goes on in sandbox {}; follow it from here with\n  {} {} --offset {}",
                     sandbox_id, attach_hint_, sandbox_id, offset));
}

}  // namespace gb::cli
