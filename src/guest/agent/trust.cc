// SPDX-License-Identifier: Apache-2.0
#include "guest/agent/trust.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <sys/stat.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "guest/agent/temporary_name.h"

namespace gb::agent {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLocalFolder = "local/share/ca-certificates";  // below /usr
constexpr const char* kLocalName = "glovebox-egress.crt";
constexpr const char* kLinkOfDistribution = "glovebox-egress.pem";  // update-ca-certificates makes it of that
constexpr const char* kHashFolder = "ssl/certs";                    // this and the following below /etc
constexpr const char* kBundleName = "ca-certificates.crt";
struct Place {
    const char* folder;
    const char* name;
};
constexpr Place kOtherBundles[] = {{"pki/tls/certs", "ca-bundle.crt"}, {"ssl", "cert.pem"}};
constexpr off_t kLargestBundle = off_t{8} << 20;
constexpr int kMostOfOneHash = 100;
constexpr int kTries = 3;

enum class Missing { make, is_error };

bool is_below(const fs::path& path, const fs::path& folder) {
    return path.native().starts_with(folder.native() + "/");
}

// What is not there, or is no place of ours to write: nothing of ours can be in it.
bool is_none_of_ours(const Error& error) {
    return error.code == ErrorCode::not_found || error.code == ErrorCode::failed_precondition;
}

Result<fs::path> real_path(const fs::path& path) {
    std::error_code ec;
    fs::path real = fs::canonical(path, ec);
    if (ec) return fail_errno(ec.value(), fmt::format("find {}", path.string()));
    return real;
}

// The real path of a folder below `top` ("etc", "usr") of the guest. Links may lead anywhere below that, and
// nowhere else.
Result<fs::path> folder_below(const fs::path& root, const char* top, const char* relative, Missing missing) {
    GB_TRY_ASSIGN(fs::path at, real_path(root));
    const fs::path base = at / top;
    for (const fs::path& name : relative[0] == '\0' ? fs::path(top) : fs::path(top) / relative) {
        at /= name;
        if (missing == Missing::make && ::mkdir(at.c_str(), 0755) != 0 && errno != EEXIST)
            return fail_errno(fmt::format("mkdir {}", at.string()));
        GB_TRY_ASSIGN(at, real_path(at));
        if (at != base && !is_below(at, base))
            return fail(ErrorCode::failed_precondition,
                        fmt::format("/{}/{} leads out of /{}", top, relative, top));
    }
    return at;
}

// What a file was when it was read, to see whether somebody else has written it meanwhile.
struct FileRead {
    fs::path path;  // real
    struct stat facts{};
    std::string text;
};

bool is_same(const struct stat& a, const struct stat& b) {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
           a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

std::unexpected<Error> written_meanwhile(const fs::path& path) {
    return fail(ErrorCode::aborted, fmt::format("{} was written meanwhile", path.string()));
}

Result<FileRead> read_regular(const fs::path& path) {
    FileRead file{.path = path};
    // A pipe would make us wait for who writes to it.
    GB_TRY_ASSIGN(const UniqueFd fd, open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    if (::fstat(fd.get(), &file.facts) != 0) return fail_errno(fmt::format("stat {}", path.string()));
    if (!S_ISREG(file.facts.st_mode))
        return fail(ErrorCode::failed_precondition, fmt::format("{} is not a file", path.string()));
    if (file.facts.st_size > kLargestBundle)
        return fail(ErrorCode::too_large, fmt::format("{} is too large", path.string()));
    file.text.resize(static_cast<std::size_t>(file.facts.st_size));
    std::size_t have = 0;
    while (have < file.text.size()) {
        const ssize_t n = ::read(fd.get(), file.text.data() + have, file.text.size() - have);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(fmt::format("read {}", path.string()));
        if (n == 0) return written_meanwhile(path);
        have += static_cast<std::size_t>(n);
    }
    return file;
}

// Nothing if there is no such name.
Result<std::optional<FileRead>> read_bundle(const fs::path& folder, const char* name) {
    struct stat facts{};
    if (::lstat((folder / name).c_str(), &facts) != 0) {
        if (errno == ENOENT) return std::nullopt;
        return fail_errno(fmt::format("stat {}", (folder / name).string()));
    }
    GB_TRY_ASSIGN(const fs::path real, real_path(folder / name));
    return read_regular(real);
}

// What a file may take the place of: nothing; whatever has the name; or the file that was read.
struct InPlaceOf {
    enum class Kind { nothing, anything, file } kind;
    struct stat facts{};  // of the file
};

// Whole or not at all for a reader, and a link is never followed. Not synced: the disk lives with the memory,
// and is synced when it is kept alone.
Status put_file(const fs::path& path, std::string_view text, const InPlaceOf& old) {
    using Kind = InPlaceOf::Kind;
    const fs::path temporary = path.parent_path() / temporary_name(old.kind == Kind::nothing);
    const auto put = [&]() -> Status {
        GB_TRY_ASSIGN(const UniqueFd fd,
                      open_file(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
        GB_TRY(write_all(fd.get(), text));
        if (old.kind == Kind::file && ::fchown(fd.get(), old.facts.st_uid, old.facts.st_gid) != 0)
            return fail_errno(fmt::format("chown {}", temporary.string()));
        if (::fchmod(fd.get(), old.kind == Kind::file ? old.facts.st_mode & 07777 : 0644) != 0)
            return fail_errno(fmt::format("chmod {}", temporary.string()));
        struct stat now{};
        if (old.kind == Kind::file && (::lstat(path.c_str(), &now) != 0 || !is_same(old.facts, now)))
            return written_meanwhile(path);
        const unsigned flags = old.kind == Kind::nothing ? RENAME_NOREPLACE : 0;
        if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), flags) != 0) {
            if (errno == EEXIST && old.kind == Kind::nothing) return written_meanwhile(path);
            return fail_errno(fmt::format("rename to {}", path.string()));
        }
        return {};
    };
    Status done = put();
    if (!done) ::unlink(temporary.c_str());
    return done;
}

// Most of a bundle stays as it is: the disk of a sandbox is a difference to its template's.
Status append(const FileRead& file, std::string_view more) {
    GB_TRY_ASSIGN(const UniqueFd fd, open_file(file.path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK));
    struct stat now{};
    if (::fstat(fd.get(), &now) != 0) return fail_errno(fmt::format("stat {}", file.path.string()));
    if (!is_same(file.facts, now)) return written_meanwhile(file.path);
    Status done = write_all(fd.get(), more);
    // A part of a certificate would make the whole file unreadable for some.
    if (!done && ::ftruncate(fd.get(), now.st_size) != 0)
        return fail_errno(fmt::format("truncate {}", file.path.string()));
    return done;
}

Status change_once(const fs::path& etc, const fs::path& folder, const char* name, const std::string& pem,
                   const std::vector<std::string>& known, Missing missing) {
    GB_TRY_ASSIGN(const std::optional<FileRead> file, read_bundle(folder, name));
    if (!file) {
        if (missing == Missing::is_error) return {};
        return put_file(folder / name, with_authority("", pem, known), {InPlaceOf::Kind::nothing});
    }
    if (!is_below(file->path, etc))
        return fail(ErrorCode::failed_precondition,
                    fmt::format("{} leads out of /etc", (folder / name).string()));
    const std::string text =
        pem.empty() ? without_authority(file->text, known) : with_authority(file->text, pem, known);
    if (text == file->text) return {};
    if (text.starts_with(file->text)) return append(*file, std::string_view(text).substr(file->text.size()));
    // Of a guest without certificates, where we made it.
    if (text.empty() && file->path == folder / name) {
        if (::unlink(file->path.c_str()) != 0)
            return fail_errno(fmt::format("remove {}", file->path.string()));
        return {};
    }
    return put_file(file->path, text, {InPlaceOf::Kind::file, file->facts});
}

Status try_change(const fs::path& root, Place place, const std::string& pem,
                  const std::vector<std::string>& known, Missing missing) {
    GB_TRY_ASSIGN(const fs::path etc, folder_below(root, "etc", "", missing));
    GB_TRY_ASSIGN(const fs::path folder, folder_below(root, "etc", place.folder, missing));
    for (int i = 1;; ++i) {
        const Status done = change_once(etc, folder, place.name, pem, known, missing);
        if (done || done.error().code != ErrorCode::aborted || i == kTries) return done;
    }
}

// Missing::make: it must be a bundle afterwards. Otherwise what is none, and cannot hold anything of ours,
// stays.
Status change_bundle(const fs::path& root, Place place, const std::string& pem,
                     const std::vector<std::string>& known, Missing missing) {
    const Status done = try_change(root, place, pem, known, missing);
    if (done || missing == Missing::make || !is_none_of_ours(done.error())) return done;
    return {};
}

// A name of the form <hash>.<number> in OpenSSL's folder (X509_LOOKUP_hash_dir(3)).
struct HashName {
    std::string hash;
    int number = 0;
};

std::string text_of(const HashName& name) {
    return fmt::format("{}.{}", name.hash, name.number);
}

std::optional<HashName> parse_hash_name(const std::string& text) {
    HashName name{.hash = text.substr(0, 8)};
    if (text.size() < 10 || name.hash.find_first_not_of("0123456789abcdef") != std::string::npos)
        return std::nullopt;
    const char* end = text.data() + text.size();
    const auto [stop, ec] = std::from_chars(text.data() + 9, end, name.number);
    if (ec != std::errc{} || stop != end || name.number < 0 || text_of(name) != text) return std::nullopt;
    return name;
}

bool has_name(const fs::path& path) {
    struct stat facts{};
    return ::lstat(path.c_str(), &facts) == 0;
}

class HashFolder {
  public:
    // Real paths. `anchor`: the file that links of ours lead to.
    HashFolder(fs::path root, fs::path folder, fs::path anchor)
        : root_(std::move(root)), folder_(std::move(folder)), anchor_(std::move(anchor)) {}

    // The one link of ours is <hash>.N; "" removes it.
    [[nodiscard]] Status apply(const std::string& hash) const {
        GB_TRY_ASSIGN(const std::vector<HashName> ours, find_ours());
        bool there = false;
        for (const HashName& name : ours) {
            if (name.hash == hash && !there)
                there = true;
            else
                GB_TRY(remove(name));
        }
        if (!hash.empty()) return there ? Status() : add(hash);
        const fs::path link = folder_ / kLinkOfDistribution;
        if (leads_to_us(link) && ::unlink(link.c_str()) != 0)
            return fail_errno(fmt::format("remove {}", link.string()));
        return {};
    }

  private:
    // By what the links say: the file may be gone already.
    [[nodiscard]] bool leads_to_us(const fs::path& link) const {
        std::error_code ec;
        const fs::path target = fs::read_symlink(link, ec);
        if (ec) return false;
        const fs::path full = target.is_absolute() ? root_ / target.relative_path() : folder_ / target;
        const fs::path plain = full.lexically_normal();
        const fs::path other = folder_ / kLinkOfDistribution;
        return plain == anchor_ || (plain == other && link != other && leads_to_us(other));
    }

    // The higher numbers first: removing one may move those above it.
    [[nodiscard]] Result<std::vector<HashName>> find_ours() const {
        std::vector<HashName> ours;
        std::error_code ec;
        for (auto at = fs::directory_iterator(folder_, ec); !ec && at != fs::directory_iterator();
             at.increment(ec)) {
            const auto name = parse_hash_name(at->path().filename().string());
            if (name && leads_to_us(at->path())) ours.push_back(*name);
        }
        if (ec) return fail_errno(ec.value(), fmt::format("read {}", folder_.string()));
        std::ranges::sort(ours, std::ranges::greater(), &HashName::number);
        return ours;
    }

    // OpenSSL looks for 0, 1, … and ends at the first that is missing: the last one takes the free place.
    [[nodiscard]] Status remove(const HashName& name) const {
        const fs::path path = folder_ / text_of(name);
        if (::unlink(path.c_str()) != 0) return fail_errno(fmt::format("remove {}", path.string()));
        HashName last = name;
        while (has_name(folder_ / text_of({last.hash, last.number + 1}))) ++last.number;
        if (last.number != name.number && ::rename((folder_ / text_of(last)).c_str(), path.c_str()) != 0)
            return fail_errno(fmt::format("rename to {}", path.string()));
        return {};
    }

    [[nodiscard]] Status add(const std::string& hash) const {
        const fs::path target = anchor_.lexically_relative(folder_);
        for (HashName name{hash, 0}; name.number < kMostOfOneHash; ++name.number) {
            const fs::path path = folder_ / text_of(name);
            if (::symlink(target.c_str(), path.c_str()) == 0) return {};
            if (errno != EEXIST) return fail_errno(fmt::format("link {}", path.string()));
        }
        return fail(ErrorCode::resource_exhausted, fmt::format("{}: no number is free", hash));
    }

    fs::path root_, folder_, anchor_;
};

Status change_hash_folder(const fs::path& root, const fs::path& anchor, const std::string& hash) {
    const auto folder =
        folder_below(root, "etc", kHashFolder, hash.empty() ? Missing::is_error : Missing::make);
    if (!folder && hash.empty() && is_none_of_ours(folder.error())) return {};
    if (!folder) return std::unexpected(folder.error());
    GB_TRY_ASSIGN(fs::path real_root, real_path(root));
    return HashFolder(std::move(real_root), *folder, anchor).apply(hash);
}

// The certificate that is there, for what update-ca-certificates has made of it; "" if there is none.
std::string certificate_in(const fs::path& anchor) {
    const auto file = read_regular(anchor);
    return file && certificate_length(file->text) == file->text.size() ? file->text : std::string();
}

Status change_anchor(const fs::path& anchor, const std::string& pem) {
    if (!pem.empty())
        return certificate_in(anchor) == pem ? Status() : put_file(anchor, pem, {InPlaceOf::Kind::anything});
    // A name of ours: a link is removed, not what it leads to.
    if (::unlink(anchor.c_str()) != 0 && errno != ENOENT)
        return fail_errno(fmt::format("remove {}", anchor.string()));
    return {};
}

}  // namespace

TrustStore::Outcome TrustStore::apply(const Authority& authority) {
    Outcome outcome;
    const auto note = [&](const Status& done) {
        if (!done && outcome.status) outcome.status = done;
        return done.has_value();
    };
    const auto remember = [&](const std::string& pem) {
        if (!pem.empty() && std::ranges::find(known_, pem) == known_.end()) known_.push_back(pem);
    };
    const bool none = authority.pem.empty();
    const Missing missing = none ? Missing::is_error : Missing::make;

    // First where the distribution's tool reads, in case it runs just now.
    const auto local = folder_below(root_, "usr", kLocalFolder, missing);
    const fs::path anchor =
        (local ? *local : real_path(root_).value_or(root_) / "usr" / kLocalFolder) / kLocalName;
    if (local) {
        remember(certificate_in(anchor));
        note(change_anchor(anchor, authority.pem));
    } else if (!none || !is_none_of_ours(local.error())) {
        note(std::unexpected(local.error()));
    }
    remember(authority.pem);
    const bool changed =
        note(change_bundle(root_, {kHashFolder, kBundleName}, authority.pem, known_, missing));
    outcome.trusted = !none && changed;
    for (const Place& place : kOtherBundles)
        note(change_bundle(root_, place, authority.pem, known_, Missing::is_error));
    note(change_hash_folder(root_, anchor, authority.hash));

    // A failed one is tried again the next time, for all that may be left.
    if (outcome.status) known_.clear();
    if (outcome.status && !none) known_.push_back(authority.pem);
    return outcome;
}

}  // namespace gb::agent
