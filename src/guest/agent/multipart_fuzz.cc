// SPDX-License-Identifier: Apache-2.0
// A form: the same parts however its body is cut into pieces, and a form that was written is read as it was
// meant.
#include <cstdint>
#include <cstdlib>
#include <optional>

#include <fuzzer/FuzzedDataProvider.h>

#include "guest/agent/multipart.h"

namespace {

class Recorder final : public gb::agent::PartSink {
  public:
    gb::Status begin_part(const gb::agent::HeaderValue& disposition) override {
        if (open_) std::abort();
        open_ = true;
        text += gb::agent::form_file_name(disposition).value_or("?") + "=";
        return {};
    }
    gb::Status part_data(std::string_view data) override {
        if (!open_ || data.empty()) std::abort();
        text.append(data);
        return {};
    }
    gb::Status end_part() override {
        if (!open_) std::abort();
        open_ = false;
        text += '|';
        return {};
    }
    [[nodiscard]] bool is_open() const { return open_; }
    std::string text;

  private:
    bool open_ = false;
};

// The parts as text, or why there are none. `cuts`: lengths of the pieces, over and over.
gb::Result<std::string> read(std::string_view boundary, std::string_view body, std::string_view cuts) {
    Recorder recorder;
    gb::agent::MultipartParser parser(boundary, recorder);
    for (std::size_t i = 0; !body.empty(); ++i) {
        const std::size_t piece =
            cuts.empty() ? body.size() : 1U + static_cast<unsigned char>(cuts[i % cuts.size()]);
        GB_TRY(parser.feed(body.substr(0, piece)));
        body.remove_prefix(std::min(body.size(), piece));
    }
    GB_TRY(parser.finish());
    if (recorder.is_open()) std::abort();
    return recorder.text;
}

void check_cuts(std::string_view boundary, std::string_view body, std::string_view cuts) {
    const auto whole = read(boundary, body, {});
    const auto pieces = read(boundary, body, cuts);
    if (whole.has_value() != pieces.has_value()) std::abort();
    if (whole ? *whole != *pieces : whole.error().code != pieces.error().code) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    FuzzedDataProvider input(data, size);
    const std::string cuts = input.ConsumeRandomLengthString(8);
    std::string boundary = "b" + input.ConsumeRandomLengthString(200);
    std::erase_if(boundary, [](char c) { return c == '\r' || c == '\n'; });  // it comes from a header

    const std::string delimiter = "\r\n--" + boundary;
    std::string form, meant;
    while (input.ConsumeBool()) {
        const std::string content = input.ConsumeRandomLengthString();
        if ((content + delimiter).find(delimiter) != content.size())
            continue;  // a client takes another boundary
        form += delimiter + "\r\nContent-Disposition: form-data; filename=\"f\"\r\n\r\n" + content;
        meant += "f=" + content + "|";
    }
    form += delimiter + "--\r\n";
    if (read(boundary, form, {}) != meant) std::abort();
    if (read(boundary, form.substr(2), cuts) != meant) std::abort();

    const std::string text = input.ConsumeRemainingBytesAsString();
    check_cuts(boundary, text, cuts);
    check_cuts("b", text, cuts);
    check_cuts(boundary, form.substr(0, form.size() / 2) + text, cuts);
    return 0;
}
