// Files as values: whole reads with a size limit, writes that leave either the old or the new bytes, private folders,
// and the question whether a path is inside a folder once symbolic links are followed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "daemon/base/status.h"

namespace kernelwright {

inline constexpr size_t kDefaultReadLimit = size_t{256} << 20;

// The whole file. Larger than `max_bytes` is kLimit, missing is kNotFound. Regular files and pipes both work.
Expected<std::string> ReadFile(const std::filesystem::path& path, size_t max_bytes = kDefaultReadLimit);

// Replaces the file by `contents`: temporary file beside it, fsync, rename, fsync of the folder. A reader sees the old
// or the new bytes, never a mixture, also after a power cut. An existing file keeps its mode (and owner where the
// system lets us) and a symbolic link stays a link; a new file gets `mode`. Refuses a file without any write bit, a
// missing folder and a full disk, each with its own message and without touching what was there.
Status WriteFileAtomically(const std::filesystem::path& path, std::string_view contents, unsigned mode = 0644);

// Makes the folder and its missing parents with mode 0700, or checks that an existing one belongs to this user and
// tightens its mode to 0700. A symbolic link in its place is refused.
Status MakePrivateFolder(const std::filesystem::path& path);

// Absolute path with every link followed; kNotFound when it does not exist.
Expected<std::filesystem::path> RealPath(const std::filesystem::path& path);

// Like RealPath, but a tail of the path need not exist yet: the deepest existing parent is resolved, and "." and ".."
// of the rest are folded.
Expected<std::filesystem::path> ResolvePath(const std::filesystem::path& path);

// Whether `path` is `folder` or below it, component by component ("/a/bc" is not inside "/a/b"). Both must be absolute
// and resolved: this compares names only.
bool IsInside(const std::filesystem::path& path, const std::filesystem::path& folder);

// Whether `path` is inside `folder` after both are resolved.
Expected<bool> ResolvesInside(const std::filesystem::path& path, const std::filesystem::path& folder);

// Removes a file or a whole folder without following links. Missing is fine.
Status RemoveTree(const std::filesystem::path& path);

// A folder of mode 0700 with a unique name, removed with its contents when the object dies.
class TempFolder {
 public:
  // In `parent`, or in $TMPDIR or /tmp when empty.
  static Expected<TempFolder> Make(std::string_view prefix = "kernelwright-", const std::filesystem::path& parent = {});
  TempFolder(TempFolder&& other) noexcept;
  TempFolder& operator=(TempFolder&& other) noexcept;
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();

  const std::filesystem::path& path() const { return path_; }
  // Gives up ownership; the folder stays.
  std::filesystem::path release();

 private:
  explicit TempFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace kernelwright
