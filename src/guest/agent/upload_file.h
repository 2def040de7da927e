// SPDX-License-Identifier: Apache-2.0
// A file that is being uploaded. Nobody sees it under its name before it is complete.
#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "guest/agent/http_values.h"
#include "guest/agent/users.h"

namespace gb::agent {

class UploadFile {
  public:
    // `path` is absolute and clean; a link there is written through. Missing parents are made for the owner.
    // invalid_argument when it is a directory. Devices, pipes and files in /proc and the like are written in
    // place.
    static Result<UploadFile> create(const std::string& path, const User& owner);

    UploadFile(UploadFile&& other) noexcept;
    UploadFile& operator=(UploadFile&&) = delete;
    ~UploadFile();  // an upload that was not committed leaves nothing behind

    Status write(std::string_view data);  // no_space when the disk is full
    // Appends a whole file with its holes, without reading it into memory where the file system can.
    Status append_file(const std::string& source);

    // Puts the file in place: the owner's, with the mode of the file it replaces (0644 for a new one) and
    // with this metadata and no other. invalid_argument when the metadata is more than the file system can
    // hold.
    Status commit(const Metadata& metadata);

    [[nodiscard]] const std::string& path() const { return path_; }  // as given

  private:
    UploadFile(std::string path, const User& owner)
        : path_(std::move(path)), uid_(owner.uid), gid_(owner.gid) {}
    Status open_unfinished(const std::string& folder);
    Status open_in_place(bool truncate);
    Status give_name();
    Status set_metadata(const Metadata& metadata);
    Status replace();

    std::string path_;
    std::string target_;     // behind links
    std::string temporary_;  // empty: written in place
    bool nameless_ = false;  // the file has no name yet, not even the temporary one
    UniqueFd fd_;
    uid_t uid_;
    gid_t gid_;
    mode_t mode_ = 0644;
};

}  // namespace gb::agent
