// SPDX-License-Identifier: Apache-2.0
// What was signed is accepted in its time, and nothing else is.
#include <cstdint>
#include <cstdlib>

#include <fuzzer/FuzzedDataProvider.h>

#include "base/file_signature.h"

namespace {

using namespace gb;

constexpr std::string_view kToken = "secret";

struct Url {
    std::string path, username;
    FileOperation operation = FileOperation::read;
    std::optional<std::int64_t> expiration;
    bool operator==(const Url&) const = default;
};

Url take_url(FuzzedDataProvider& input) {
    Url url;
    url.path = input.ConsumeRandomLengthString();
    url.username = input.ConsumeRandomLengthString();
    if (input.ConsumeBool()) url.operation = FileOperation::write;
    if (input.ConsumeBool()) url.expiration = input.ConsumeIntegral<std::int64_t>();
    return url;
}

std::string sign(const Url& url, std::string_view token = kToken) {
    return sign_url(url.path, url.operation, url.username, token, url.expiration);
}

bool accepted(const Url& url, const std::string& signature, std::int64_t now) {
    const std::string expiration = url.expiration ? std::to_string(*url.expiration) : "";
    return check_signature({url.path, url.username, &signature, url.expiration ? &expiration : nullptr},
                           url.operation, kToken, now)
        .has_value();
}

void change_byte(std::string& text, std::size_t place, char by) {
    if (!text.empty()) text[place % text.size()] = static_cast<char>(text[place % text.size()] ^ by);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    FuzzedDataProvider input(data, size);
    const auto now = input.ConsumeIntegral<std::int64_t>();
    const auto place = input.ConsumeIntegral<std::uint8_t>();
    const char by = input.ConsumeIntegralInRange<char>(1, 127);
    const Url url = take_url(input);
    const Url other = take_url(input);
    const std::string text = input.ConsumeRemainingBytesAsString();

    const std::string signature = sign(url);
    const bool in_time = !url.expiration || *url.expiration >= now;
    if (accepted(url, signature, now) != (in_time && !url.username.contains(':'))) std::abort();
    if (!signature.starts_with("v1_") || signature.size() != 46) std::abort();

    // From here on `moment` is one at which nothing has expired.
    const std::int64_t moment = std::min(url.expiration.value_or(0), other.expiration.value_or(0));
    if (other != url && accepted(other, signature, moment)) std::abort();
    if (accepted(url, sign(url, "Secret"), moment)) std::abort();
    for (int part = 0; part < 4; ++part) {
        Url changed = url;
        std::string forged = signature;
        if (part == 0) change_byte(changed.path, place, by);
        if (part == 1) change_byte(changed.username, place, by);
        if (part == 2)
            changed.operation =
                url.operation == FileOperation::read ? FileOperation::write : FileOperation::read;
        if (part == 3) change_byte(forged, place, by);
        if ((changed != url || forged != signature) && accepted(changed, forged, moment)) std::abort();
    }
    if (accepted(url, signature.substr(0, place % signature.size()), moment)) std::abort();
    if (text != signature && !text.ends_with('=') && accepted(url, text, moment)) std::abort();

    // Whatever text says when it ends, it is the number that was signed.
    const auto status =
        check_signature({url.path, url.username, &signature, &text}, url.operation, kToken, now);
    if (status && (!url.expiration || std::strtoll(text.c_str(), nullptr, 10) != *url.expiration || !in_time))
        std::abort();
    return 0;
}
