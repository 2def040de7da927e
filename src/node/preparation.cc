// SPDX-License-Identifier: Apache-2.0
#include "node/preparation.h"

#include <algorithm>

#include <sys/file.h>

#include <boost/json.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

namespace gb {
namespace fs = std::filesystem;
namespace json = boost::json;
namespace {

constexpr std::int64_t kEveryMs = 1000;
// A reader holds the lock for a moment.
constexpr int kTries = 50;
constexpr useconds_t kTryAgainUs = 10'000;

fs::path folder_of(const fs::path& templates) {
    return templates / ".preparing";
}

}  // namespace

PreparationNote::PreparationNote(const fs::path& templates, const std::string& name)
    : file_(folder_of(templates) / (name + ".json")) {
    if (!make_dirs(file_.parent_path())) return;
    auto lock = open_file(folder_of(templates) / (name + ".lock"), O_RDWR | O_CREAT);
    if (!lock) return;
    for (int i = 0; i < kTries; ++i, ::usleep(kTryAgainUs)) {
        if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) continue;
        ::unlink(file_.c_str());  // of one that died
        lock_ = *std::move(lock);
        return;
    }
}

PreparationNote::~PreparationNote() {
    if (lock_) ::unlink(file_.c_str());
}

void PreparationNote::update(const image::Progress& progress) {
    const std::int64_t now = monotonic_ms();
    if (!lock_ || (progress.step == step_ && now - written_ms_ < kEveryMs)) return;
    step_ = progress.step;
    written_ms_ = now;
    const json::object note{{"percent", static_cast<int>(std::clamp(progress.fraction, 0.0, 1.0) * 100)},
                            {"step", progress.step},
                            {"detail", progress.detail}};
    (void)write_file_atomic(file_, json::serialize(note) + "\n");
}

std::optional<Preparation> preparation_of(const fs::path& templates, const std::string& name) {
    auto lock = open_file(folder_of(templates) / (name + ".lock"), O_RDONLY);
    if (!lock || ::flock(lock->get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;
    Preparation out;
    auto text = read_file(folder_of(templates) / (name + ".json"));
    boost::system::error_code ec;
    const json::value note = text ? json::parse(*text, ec) : json::value();
    if (ec || !note.is_object()) return out;  // it has just begun
    const json::object& fields = note.get_object();
    if (const json::value* percent = fields.if_contains("percent"); percent != nullptr && percent->is_int64())
        out.percent = static_cast<int>(std::clamp<std::int64_t>(percent->get_int64(), 0, 100));
    for (auto [field, key] : {std::pair(&out.step, "step"), std::pair(&out.detail, "detail")})
        if (const json::value* value = fields.if_contains(key); value != nullptr && value->is_string())
            *field = std::string_view(value->get_string()).substr(0, 300);
    return out;
}

}  // namespace gb
