// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/multipart.h"

#include <vector>

#include <gtest/gtest.h>

namespace gb::agent {
namespace {

class Recorder final : public PartSink {
  public:
    Status begin_part(const HeaderValue& disposition) override {
        const std::string* name = disposition.find("name");
        parts.push_back((name != nullptr ? *name : "?") + "=");
        ++open;
        return {};
    }
    Status part_data(std::string_view data) override {
        EXPECT_FALSE(data.empty());
        parts.back().append(data);
        return {};
    }
    Status end_part() override {
        --open;
        return {};
    }
    std::vector<std::string> parts;
    int open = 0;
};

const std::string kBody =
    "preamble\r\n--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none\r\n--X\r\n--XXY two\r\n"
    "--XX  \r\ncontent-disposition: form-data; name=b\r\nContent-Type: text/plain\r\n\r\n\r\n"
    "--XX\r\n\r\nbare\r\n--XX--\r\nepilogue";
const std::vector<std::string> kParts{"a=one\r\n--X\r\n--XXY two", "b=", "?=bare"};

TEST(Multipart, WholeBodyAtOnce) {
    Recorder recorder;
    MultipartParser parser("XX", recorder);
    ASSERT_TRUE(parser.feed(kBody));
    EXPECT_TRUE(parser.finish());
    EXPECT_EQ(recorder.parts, kParts);
    EXPECT_EQ(recorder.open, 0);
}

TEST(Multipart, SplitAtEveryPlace) {
    for (std::size_t i = 0; i <= kBody.size(); ++i) {
        Recorder recorder;
        MultipartParser parser("XX", recorder);
        ASSERT_TRUE(parser.feed(kBody.substr(0, i)));
        ASSERT_TRUE(parser.feed(kBody.substr(i)));
        EXPECT_TRUE(parser.finish());
        EXPECT_EQ(recorder.parts, kParts) << "split at " << i;
    }
}

TEST(Multipart, ByteByByte) {
    Recorder recorder;
    MultipartParser parser("XX", recorder);
    for (char c : kBody) ASSERT_TRUE(parser.feed(std::string_view(&c, 1)));
    EXPECT_TRUE(parser.finish());
    EXPECT_EQ(recorder.parts, kParts);
}

TEST(Multipart, CutShortIsAnError) {
    Recorder recorder;
    MultipartParser parser("XX", recorder);
    ASSERT_TRUE(parser.feed("--XX\r\nContent-Disposition: form-data; name=a\r\n\r\nhalf"));
    EXPECT_EQ(parser.finish().error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(recorder.open, 1);
}

TEST(Multipart, EndlessHeadersAreRefused) {
    Recorder recorder;
    MultipartParser parser("XX", recorder);
    ASSERT_TRUE(parser.feed("--XX\r\n"));
    EXPECT_FALSE(parser.feed(std::string(MultipartParser::kMaxPartHeader + 100, 'x')));
}

TEST(Multipart, HeadersHaveOneLimitHoweverTheyArrive) {
    for (std::size_t more : {0U, 1U}) {
        // The line end of the boundary counts too.
        const std::string headers = "\r\n" + std::string(MultipartParser::kMaxPartHeader - 2 + more, 'x');
        const std::string body = "--XX" + headers + "\r\n\r\nend\r\n--XX--";
        for (std::size_t cut : {std::size_t{0}, body.size() - 18, body.size() - 16, body.size() - 14}) {
            Recorder recorder;
            MultipartParser parser("XX", recorder);
            const bool read =
                parser.feed(body.substr(0, cut)) && parser.feed(body.substr(cut)) && parser.finish();
            EXPECT_EQ(read, more == 0) << cut;
        }
    }
}

}  // namespace
}  // namespace gb::agent
