// SPDX-License-Identifier: Apache-2.0
// What a builder that is at work tells the rest of the machine: <templates>/.preparing/<name>.json, under a lock that ends
// with the builder. A server reads it to answer who asks for the template.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "image/progress.h"

namespace gb {

struct Preparation {
    int percent = 0;
    std::string step;    // "boot"
    std::string detail;  // "12 s"
};

// The builder's side. Of two builders of one template the first one tells.
class PreparationNote {
  public:
    PreparationNote(const std::filesystem::path& templates, const std::string& name);
    ~PreparationNote();  // nothing is prepared any more
    PreparationNote(const PreparationNote&) = delete;
    PreparationNote& operator=(const PreparationNote&) = delete;

    // Once a second at most, but for a new step. What cannot be written is not told.
    void update(const image::Progress& progress);

  private:
    std::filesystem::path file_;
    UniqueFd lock_;  // none: another builder tells
    std::string step_;
    std::int64_t written_ms_ = 0;
};

// The reader's. Nothing when no builder of it is at work, whatever a dead one left.
std::optional<Preparation> preparation_of(const std::filesystem::path& templates, const std::string& name);

}  // namespace gb
