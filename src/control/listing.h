// SPDX-License-Identifier: Apache-2.0
// Which sandboxes a list request shows, in which order, from which cursor on. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/records.h"

namespace gb {

struct ListQuery {
    bool running = true, paused = true;            // which states; what is being paused or resumed counts as paused
    std::map<std::string, std::string> metadata;   // all pairs must be equal
    std::optional<std::string> template_ref;       // id or name
    std::optional<std::int64_t> started_after_ms;  // inclusive
    bool ascending = false;                        // by start time
    std::size_t limit = 100;                       // at least 1
    std::string next_token;                        // opaque; empty: the first page
};

struct ListPage {
    std::vector<SandboxRecord> items;
    std::string next_token;   // empty on the last page
    std::size_t running = 0;  // matching and running, over all pages
};

// Whether clients may see a sandbox in this state, and as what.
enum class Shown { hidden, running, paused };
Shown shown_as(SandboxState state);

Result<ListPage> list_page(std::vector<const SandboxRecord*> records, const ListQuery& query);

// The metadata filter as clients send it: a form-encoded list of pairs inside one query parameter, possibly encoded
// once more (contract 2.3). `value` is the parameter after ordinary query decoding.
Result<std::map<std::string, std::string>> parse_metadata_filter(std::string_view value);

}  // namespace gb
