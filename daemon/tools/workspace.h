// The files that an agent sees: a folder of the user's, read-only, and on top of it the texts that were edited in this
// run. An edit changes only the texts here; nothing on the disk is ever written. Paths are confined to the folder,
// links included, and files that usually hold secrets are not shown.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"

namespace kernelwright::tools {

struct WorkspaceFile {
  std::string path;  // relative, with forward slashes
  std::string text;
  bool edited = false;
};

class Workspace {
 public:
  static constexpr size_t kMostFileBytes = size_t{1} << 20;

  // `root` must exist; links in it are resolved once.
  static Expected<Workspace> Open(const std::filesystem::path& root);
  // With these texts (relative path -> text) in place of, or beside, those on the disk.
  static Expected<Workspace> Open(const std::filesystem::path& root, std::map<std::string, std::string> texts);
  Workspace(Workspace&& other) noexcept;

  const std::filesystem::path& root() const { return root_; }

  // The path relative to the root in its normal form. kUsage for what leaves the folder, is no plain file name, or is
  // one that is kept from models (.git, .env, keys).
  Expected<std::string> Resolve(std::string_view path) const;
  // The text as it is now. kNotFound with the closest name; kUsage for files that are no UTF-8 text or too large.
  Expected<WorkspaceFile> Read(std::string_view path) const;
  bool Exists(std::string_view path) const;
  // Puts a text in place of what was there. Only texts that are UTF-8 and of allowed size.
  Status Put(std::string_view path, std::string text);
  // The edited texts by path.
  std::map<std::string, std::string> Edited() const;
  // All text files, sorted; at most `most`. Hidden folders, build output and environments are left out.
  std::vector<std::string> List(size_t most = 2000) const;

 private:
  explicit Workspace(std::filesystem::path root) : root_(std::move(root)) {}
  std::filesystem::path root_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> texts_;
};

}  // namespace kernelwright::tools
