// SPDX-License-Identifier: Apache-2.0
// Lines as code inside a kernel could write them into the answers' pipe, in both ways of speaking.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include <unistd.h>

#include "base/file.h"
#include "guest/interpreter/bash_codec.h"
#include "guest/interpreter/execution.h"
#include "guest/interpreter/json_codec.h"

using namespace gb::interpreter;

namespace {

void feed(gb::Result<PipeAnswer> answer, std::string_view id) {
    if (!answer) return;
    Execution execution{std::string(id)};
    for (const Message& message : answer->messages) execution.feed(message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view line(reinterpret_cast<const char*>(data), size);
    JsonCodec json;
    feed(json.decode(line), "1");

    static const std::filesystem::path folder = [] {
        auto path = std::filesystem::temp_directory_path() / ("kernel-answer-fuzz-" + std::to_string(::getpid()));
        (void)gb::make_dirs(path);
        return path;
    }();
    BashCodec bash(folder);
    (void)bash.encode({.id = "1", .code = "", .language = "bash", .count = 1, .call = {}});
    feed(bash.decode(line), "1");
    return 0;
}
