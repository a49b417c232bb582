// Whole-file I/O over POSIX calls; see files.h. The write path checks every call, fsync and close included, because a
// full disk or a quota may report itself only there.
#include "daemon/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "daemon/base/errno_status.h"
#include "daemon/base/unique_fd.h"

namespace kernelwright {

namespace fs = std::filesystem;

namespace {

// The file that a write to `path` must replace: the end of a chain of links, or the path itself.
fs::path FollowLinks(const fs::path& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return path;
  fs::path target = fs::weakly_canonical(path, error);
  return error ? path : target;
}

Status WriteAll(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return StatusFromErrno(errno, "cannot write", path.string());
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

// Writes, syncs and closes; the caller removes the file on failure.
Status FillFile(UniqueFd file, std::string_view contents, const struct stat* old, unsigned mode, const fs::path& path) {
  if (Status status = WriteAll(file.get(), contents, path); !status) return status;
  if (old != nullptr && (old->st_uid != ::geteuid() || old->st_gid != ::getegid())) {
    // Only root may give files away; for others the new owner is the writer, as with any editor that renames.
    [[maybe_unused]] const int ignored = ::fchown(file.get(), old->st_uid, old->st_gid);
  }
  if (::fchmod(file.get(), mode) != 0) return StatusFromErrno(errno, "cannot set the mode", path.string());
  if (::fsync(file.get()) != 0) return StatusFromErrno(errno, "cannot flush to disk", path.string());
  if (::close(file.release()) != 0) return StatusFromErrno(errno, "cannot close", path.string());
  return {};
}

void SyncFolder(const fs::path& folder) {
  // Some file systems cannot sync a folder; the bytes themselves are synced already.
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) ::fsync(fd.get());
}

}  // namespace

Expected<std::string> ReadFile(const fs::path& path, size_t max_bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Fail(StatusFromErrno(errno, "cannot open", path.string()));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return Fail(StatusFromErrno(errno, "cannot read", path.string()));
  const auto too_large = [&] {
    return Fail(ErrorKind::kLimit, "the file is larger than the limit of " + std::to_string(max_bytes) + " bytes",
                path.string(), "Use a smaller file.");
  };
  if (S_ISREG(info.st_mode) && static_cast<size_t>(info.st_size) > max_bytes) return too_large();
  std::string contents;
  if (S_ISREG(info.st_mode)) contents.reserve(static_cast<size_t>(info.st_size) + 1);
  std::vector<char> buffer(size_t{64} << 10);
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(StatusFromErrno(errno, "cannot read", path.string()));
    if (got == 0) return contents;
    if (contents.size() + static_cast<size_t>(got) > max_bytes) return too_large();
    contents.append(buffer.data(), static_cast<size_t>(got));
  }
}

Status WriteFileAtomically(const fs::path& path, std::string_view contents, unsigned mode) {
  const fs::path target = FollowLinks(path);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  struct stat old{};
  const bool exists = ::stat(target.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) {
    return Status(ErrorKind::kUsage, "this is a folder, not a file", path.string(), "Name a file inside it.");
  }
  // The rename needs only the folder's permission, so a read-only file must be refused by hand.
  if (exists && ((old.st_mode & 0222) == 0 || ::access(target.c_str(), W_OK) != 0)) {
    return Status(ErrorKind::kEnvironment, "the file is read-only; it was not changed", path.string(),
                  "Make it writable (chmod u+w) and try again.");
  }
  if (std::error_code error; !fs::is_directory(folder, error)) {
    return Status(ErrorKind::kNotFound, "the folder " + folder.string() + " does not exist", path.string(),
                  "Create the folder and try again.");
  }
  std::string temporary = (folder / ("." + target.filename().string() + ".XXXXXX")).string();
  UniqueFd file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.valid()) return StatusFromErrno(errno, "cannot create a file in " + folder.string(), path.string());
  const unsigned final_mode = exists ? (old.st_mode & 07777) : mode;
  Status status = FillFile(std::move(file), contents, exists ? &old : nullptr, final_mode, path);
  if (status && ::rename(temporary.c_str(), target.c_str()) != 0) {
    status = StatusFromErrno(errno, "cannot replace the file", path.string());
  }
  if (!status) {
    ::unlink(temporary.c_str());
    return status;
  }
  SyncFolder(folder);
  return {};
}

Status MakePrivateFolder(const fs::path& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) return StatusFromErrno(errno, "cannot look at the folder", path.string());
    if (path.has_parent_path() && path.parent_path() != path) {
      std::error_code error;
      if (!fs::exists(path.parent_path(), error)) {
        if (Status status = MakePrivateFolder(path.parent_path()); !status) return status;
      }
    }
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      return StatusFromErrno(errno, "cannot make the folder", path.string());
    }
    if (::lstat(path.c_str(), &info) != 0) return StatusFromErrno(errno, "cannot look at the folder", path.string());
  }
  if (!S_ISDIR(info.st_mode)) {
    return Status(ErrorKind::kEnvironment, "a private folder is needed here, but the path is a link or a file",
                  path.string(), "Move it away and try again.");
  }
  if (info.st_uid != ::geteuid()) {
    return Status(ErrorKind::kEnvironment, "the folder belongs to another user", path.string(),
                  "Move it away, or choose another place.");
  }
  if ((info.st_mode & 0777) != 0700 && ::chmod(path.c_str(), 0700) != 0) {
    return StatusFromErrno(errno, "cannot make the folder private", path.string());
  }
  return {};
}

Expected<fs::path> RealPath(const fs::path& path) {
  std::error_code error;
  fs::path real = fs::canonical(path, error);
  if (error) return Fail(StatusFromErrno(error.value(), "cannot resolve the path", path.string()));
  return real;
}

Expected<fs::path> ResolvePath(const fs::path& path) {
  std::error_code error;
  fs::path absolute = fs::absolute(path, error);
  if (!error) absolute = fs::weakly_canonical(absolute, error);
  if (error) return Fail(StatusFromErrno(error.value(), "cannot resolve the path", path.string()));
  // A trailing slash would leave an empty last component.
  if (!absolute.has_filename() && absolute.has_relative_path()) absolute = absolute.parent_path();
  return absolute;
}

bool IsInside(const fs::path& path, const fs::path& folder) {
  auto part = path.begin();
  for (const fs::path& wanted : folder) {
    if (wanted.empty()) continue;  // trailing slash of the folder
    if (part == path.end() || *part != wanted) return false;
    ++part;
  }
  for (; part != path.end(); ++part) {
    if (*part == "..") return false;
  }
  return true;
}

Expected<bool> ResolvesInside(const fs::path& path, const fs::path& folder) {
  Expected<fs::path> inner = ResolvePath(path);
  if (!inner) return Fail(inner.error());
  Expected<fs::path> outer = ResolvePath(folder);
  if (!outer) return Fail(outer.error());
  return IsInside(*inner, *outer);
}

Status RemoveTree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return StatusFromErrno(error.value(), "cannot remove", path.string());
  return {};
}

Expected<TempFolder> TempFolder::Make(std::string_view prefix, const fs::path& parent) {
  fs::path base = parent;
  if (base.empty()) {
    const char* configured = std::getenv("TMPDIR");
    base = configured != nullptr && *configured != '\0' ? configured : "/tmp";
  }
  std::string name = (base / (std::string(prefix) + "XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) {
    return Fail(StatusFromErrno(errno, "cannot make a temporary folder", base.string()));
  }
  return TempFolder(name);
}

TempFolder::TempFolder(TempFolder&& other) noexcept : path_(other.release()) {}

TempFolder& TempFolder::operator=(TempFolder&& other) noexcept {
  if (this != &other) {
    if (!path_.empty()) static_cast<void>(RemoveTree(path_));
    path_ = other.release();
  }
  return *this;
}

TempFolder::~TempFolder() {
  if (!path_.empty()) static_cast<void>(RemoveTree(path_));
}

fs::path TempFolder::release() { return std::exchange(path_, {}); }

}  // namespace kernelwright
