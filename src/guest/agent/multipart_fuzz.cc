#include <cstdint>
#include <cstdlib>

#include "guest/agent/multipart.h"

namespace {

class Counter final : public gb::agent::PartSink {
  public:
    gb::Status begin_part(const gb::agent::HeaderValue& disposition) override {
        (void)gb::agent::form_file_name(disposition);
        if (open_) std::abort();
        open_ = true;
        return {};
    }
    gb::Status part_data(std::string_view data) override {
        if (!open_ || data.empty()) std::abort();
        text_.append(data);
        return {};
    }
    gb::Status end_part() override {
        if (!open_) std::abort();
        open_ = false;
        text_ += '|';
        return {};
    }
    std::string text_;

  private:
    bool open_ = false;
};

}  // namespace

// The result must not depend on how the body is cut into pieces.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 1) return 0;
    const std::size_t step = data[0] + 1U;
    const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
    Counter whole, pieces;
    gb::agent::MultipartParser one("b", whole), many("b", pieces);
    const bool first = one.feed(body).has_value();
    bool second = true;
    for (std::size_t i = 0; i < body.size() && second; i += step)
        second = many.feed(body.substr(i, step)).has_value();
    if (first && second && (one.finish().has_value() != many.finish().has_value())) std::abort();
    if (first && second && one.finish() && whole.text_ != pieces.text_) std::abort();
    return 0;
}
