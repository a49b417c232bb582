// See workspace.h.
#include "daemon/tools/workspace.h"

#include <algorithm>
#include <array>

#include "daemon/base/files.h"
#include "daemon/base/text.h"

namespace kernelwright::tools {
namespace {

namespace fs = std::filesystem;

// Folders that no kernel's source is in, or that nobody wants to be read.
constexpr std::array<std::string_view, 8> kSkippedFolders = {"__pycache__", "node_modules",  "build",  "dist",
                                                             "venv",        "site-packages", "target", "env"};
constexpr std::array<std::string_view, 10> kTextEndings = {".py",  ".md",   ".txt", ".toml", ".json",
                                                           ".cfg", ".yaml", ".yml", ".ini",  ".pyi"};

bool IsHiddenName(std::string_view name) { return name.starts_with('.') && name != "." && name != ".."; }

// Names under which people keep keys. A file that is shown to a model leaves the machine.
bool HoldsSecrets(const std::string& name) {
  const std::string lower = ToLowerAscii(name);
  for (std::string_view ending : {".pem", ".key", ".p12", ".pfx", ".keystore", ".jks"}) {
    if (lower.ends_with(ending)) return true;
  }
  for (std::string_view start : {"id_rsa", "id_ed25519", "id_ecdsa", "credentials", "secrets", "service-account"}) {
    if (lower.starts_with(start)) return true;
  }
  return false;
}

bool IsTextName(const std::string& name) {
  return std::any_of(kTextEndings.begin(), kTextEndings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace

Expected<Workspace> Workspace::Open(const fs::path& root) {
  Expected<fs::path> real = RealPath(root);
  if (!real) return Fail(real.error());
  std::error_code error;
  if (!fs::is_directory(*real, error)) return Fail(ErrorKind::kUsage, "this is no folder", root.string());
  return Workspace(*std::move(real));
}

Expected<Workspace> Workspace::Open(const fs::path& root, std::map<std::string, std::string> texts) {
  Expected<Workspace> workspace = Open(root);
  if (!workspace) return workspace;
  for (auto& [path, text] : texts) {
    if (Status put = workspace->Put(path, std::move(text)); !put.ok()) return Fail(put);
  }
  return workspace;
}

Workspace::Workspace(Workspace&& other) noexcept : root_(std::move(other.root_)), texts_(std::move(other.texts_)) {}

Expected<std::string> Workspace::Resolve(std::string_view path) const {
  const auto refuse = [&](const std::string& why, const std::string& remedy = {}) {
    return Fail(ErrorKind::kUsage, why, Truncate(SanitizeUtf8(path), 200),
                remedy.empty() ? "Give a path relative to the workspace, such as kernels/matmul.py." : remedy);
  };
  if (path.empty() || path.find('\0') != std::string_view::npos || !IsValidUtf8(path)) {
    return refuse("this is no path");
  }
  const fs::path given{std::string(path)};
  const fs::path absolute = given.is_absolute() ? given : root_ / given;
  // Names first, so that "../.." is refused whatever the disk looks like; links second.
  const fs::path normal = absolute.lexically_normal();
  if (!IsInside(normal, root_) || normal == root_) return refuse("the path is outside the workspace");
  const Expected<fs::path> real = ResolvePath(normal);
  if (!real) return Fail(real.error());
  if (!IsInside(*real, root_)) return refuse("the path leads outside the workspace through a link");
  const fs::path relative = normal.lexically_relative(root_);
  for (const fs::path& part : real->lexically_relative(root_)) {
    if (IsHiddenName(part.string())) return refuse("hidden files and folders are not shown", "Use another file.");
    if (HoldsSecrets(part.string())) return refuse("this may hold keys and is not shown", "Use another file.");
  }
  for (const fs::path& part : relative) {
    if (IsHiddenName(part.string()) || HoldsSecrets(part.string())) {
      return refuse("this file is not shown", "Use another file.");
    }
  }
  return relative.generic_string();
}

Expected<WorkspaceFile> Workspace::Read(std::string_view path) const {
  const Expected<std::string> name = Resolve(path);
  if (!name) return Fail(name.error());
  {
    const std::lock_guard lock(mutex_);
    const auto found = texts_.find(*name);
    if (found != texts_.end()) return WorkspaceFile{*name, found->second, true};
  }
  std::error_code error;
  const fs::path file = root_ / *name;
  if (fs::is_directory(file, error)) {
    return Fail(ErrorKind::kUsage, "this is a folder", *name, "Name a file in it; search_workspace finds files.");
  }
  if (!fs::exists(file, error)) {
    const std::optional<std::string> meant = ClosestMatch(*name, List());
    return Fail(ErrorKind::kNotFound, "there is no such file", *name,
                meant ? "Did you mean " + *meant + "?" : "search_workspace finds files.");
  }
  if (!fs::is_regular_file(file, error)) return Fail(ErrorKind::kUsage, "this is no regular file", *name);
  Expected<std::string> text = ReadFile(file, kMostFileBytes);
  if (!text) return Fail(text.error());
  if (!IsValidUtf8(*text) || text->find('\0') != std::string::npos) {
    return Fail(ErrorKind::kUsage, "this is no text file in UTF-8", *name);
  }
  return WorkspaceFile{*name, *std::move(text), false};
}

bool Workspace::Exists(std::string_view path) const {
  const Expected<std::string> name = Resolve(path);
  if (!name) return false;
  {
    const std::lock_guard lock(mutex_);
    if (texts_.contains(*name)) return true;
  }
  std::error_code error;
  return fs::exists(root_ / *name, error);
}

Status Workspace::Put(std::string_view path, std::string text) {
  const Expected<std::string> name = Resolve(path);
  if (!name) return name.error();
  if (text.size() > kMostFileBytes) return Status(ErrorKind::kUsage, "the text is larger than 1 MiB", *name);
  if (!IsValidUtf8(text) || text.find('\0') != std::string::npos) {
    return Status(ErrorKind::kUsage, "the text is not UTF-8", *name);
  }
  const std::lock_guard lock(mutex_);
  texts_[*name] = std::move(text);
  return {};
}

std::map<std::string, std::string> Workspace::Edited() const {
  const std::lock_guard lock(mutex_);
  return texts_;
}

std::vector<std::string> Workspace::List(size_t most) const {
  std::vector<std::string> files;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [path, text] : texts_) files.push_back(path);
  }
  std::error_code error;
  constexpr int kMostEntries = 50'000;
  int entries = 0;
  for (fs::recursive_directory_iterator at(root_, fs::directory_options::skip_permission_denied, error), end;
       at != end && entries < kMostEntries && files.size() < most; at.increment(error), ++entries) {
    if (error) break;
    const std::string name = at->path().filename().string();
    if (at->is_directory(error)) {
      const bool skipped = std::find(kSkippedFolders.begin(), kSkippedFolders.end(), name) != kSkippedFolders.end();
      if (skipped || IsHiddenName(name) || fs::exists(at->path() / "pyvenv.cfg", error)) at.disable_recursion_pending();
      continue;
    }
    if (at->is_symlink(error) || !at->is_regular_file(error) || IsHiddenName(name) || HoldsSecrets(name) ||
        !IsTextName(name)) {
      continue;
    }
    files.push_back(at->path().lexically_relative(root_).generic_string());
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

}  // namespace kernelwright::tools
