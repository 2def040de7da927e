// SPDX-License-Identifier: Apache-2.0
// What the demo shows: printed, kept in a folder, and summed up as JSON.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "base/unique_fd.h"

namespace gb::cli {

class DemoReport {
  public:
    enum class Print { text, nothing };  // on standard output
    // `folder` is made if need be.
    static Result<DemoReport> open(std::filesystem::path folder, Print print);

    void heading(std::string_view text);  // what is shown from here on belongs to it
    // A finding. One that is not good makes the whole demo fail. What comes out of a sandbox may be shown.
    void show(std::string_view what, bool good, std::string_view text);
    void say(std::string_view text);
    // A file beside the transcript.
    Status keep(std::string_view name, std::string_view content);
    // Called before something is printed: a line that is being rewritten on the terminal makes room.
    void before_print(std::function<void()> make_room) { make_room_ = std::move(make_room); }
    // Beside the findings in the summary.
    void set(std::string_view name, boost::json::value value) { facts_[name] = std::move(value); }

    [[nodiscard]] bool failed() const { return failed_; }
    [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
    [[nodiscard]] boost::json::object summary() const;

  private:
    DemoReport(std::filesystem::path folder, Print print, UniqueFd transcript)
        : folder_(std::move(folder)), print_(print), transcript_(std::move(transcript)) {}

    std::filesystem::path folder_;
    Print print_;
    UniqueFd transcript_;
    std::function<void()> make_room_;
    std::string section_;
    boost::json::array findings_;
    boost::json::object facts_;
    bool failed_ = false;
};

// Without what could move a terminal's cursor, and no longer than a few lines.
std::string printable(std::string_view text);

}  // namespace gb::cli
