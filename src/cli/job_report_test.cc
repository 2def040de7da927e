// SPDX-License-Identifier: Apache-2.0
#include "cli/job_report.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include "base/crypto.h"

namespace gb::cli {
namespace {

namespace json = boost::json;

TEST(JobReport, OutputIsTextOrBase64AndNeverChanged) {
    for (const std::string& bytes :
         {std::string("row 1\n"), std::string("\x1b[0m\0\"\\", 7), std::string("h\xc3\xa9")}) {
        const std::string line = output_line(7, bytes);
        EXPECT_EQ(line.find('\n'), line.size() - 1);
        EXPECT_EQ(std::string(json::parse(line).at("text").as_string()), bytes);
        EXPECT_EQ(json::parse(line).at("offset"), 7);
    }
    for (const std::string& bytes :
         {std::string("\xff"), std::string("half \xc3"), std::string("\xa9 half")}) {
        const json::value line = json::parse(output_line(0, bytes));
        EXPECT_FALSE(line.as_object().contains("text"));
        EXPECT_EQ(base64_decode(line.at("base64").as_string()), bytes);
    }
}

TEST(JobReport, LinesSayWhatHappened) {
    const json::value segment = json::parse(segment_line({2, "i1", "a", "b"}));
    EXPECT_EQ(segment.at("type"), "segment");
    EXPECT_EQ(segment.at("number"), 2);
    const json::value end = json::parse(end_line({"i1", 3, 100, 2, "paused"}));
    EXPECT_EQ(end.at("exitCode"), 3);
    EXPECT_EQ(end.at("sandbox"), "paused");
    EXPECT_EQ(end.at("outputBytes"), 100);
}

}  // namespace
}  // namespace gb::cli
