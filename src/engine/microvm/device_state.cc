// SPDX-License-Identifier: Apache-2.0
#include "engine/microvm/device_state.h"

#include <cstdint>
#include <optional>

#include <fmt/format.h>

namespace gb::engine {
namespace {

constexpr std::string_view kStateMagic("QEVM\0\0\0\3", 8);  // and the version of the format
constexpr unsigned kConfiguration = 7;
constexpr unsigned kSubsection = 5;

class Reader {
  public:
    explicit Reader(std::string_view rest) : rest_(rest) {}
    std::optional<std::string_view> take(std::size_t count) {
        if (rest_.size() < count) return std::nullopt;
        const std::string_view out = rest_.substr(0, count);
        rest_.remove_prefix(count);
        return out;
    }
    std::optional<std::uint32_t> number(std::size_t bytes) {  // big-endian
        const auto taken = take(bytes);
        if (!taken) return std::nullopt;
        std::uint32_t out = 0;
        for (const char c : *taken) out = out << 8 | static_cast<unsigned char>(c);
        return out;
    }
    std::optional<std::string_view> text(std::size_t length_bytes) {
        const auto length = number(length_bytes);
        return length ? take(*length) : std::nullopt;
    }
    [[nodiscard]] bool next_is(unsigned byte) const {
        return !rest_.empty() && static_cast<unsigned char>(rest_.front()) == byte;
    }
    [[nodiscard]] std::string_view rest() const { return rest_; }

  private:
    std::string_view rest_;
};

bool skip_subsection(Reader& in, std::string& unknown) {
    const auto name = in.text(1);
    if (!name || !in.number(4)) return false;  // its version
    if (*name == "configuration/target-page-bits") return in.number(4).has_value();
    if (*name != "configuration/capabilities") {
        unknown = *name;
        return false;
    }
    const auto count = in.number(4);
    for (std::uint32_t i = 0; count && i < *count; ++i)
        if (!in.text(1)) return false;
    return count.has_value();
}

}  // namespace

Result<std::string> without_configuration(std::string_view stream) {
    if (!stream.starts_with(kStateMagic)) return fail(ErrorCode::data_loss, "QEMU's state does not begin as one");
    Reader in(stream.substr(kStateMagic.size()));
    if (!in.next_is(kConfiguration)) return std::string(stream);
    std::string unknown;
    bool whole = in.number(1) && in.text(4);  // the type of the machine
    while (whole && in.next_is(kSubsection)) {
        (void)in.number(1);
        whole = skip_subsection(in, unknown);
    }
    if (!whole)
        return fail(ErrorCode::data_loss, unknown.empty() ? std::string("QEMU's state ends within its configuration")
                                                          : fmt::format("QEMU's state has an unknown part: {}", unknown));
    return std::string(kStateMagic) + std::string(in.rest());
}

}  // namespace gb::engine
