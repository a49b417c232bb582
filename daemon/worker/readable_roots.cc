// Collects the readable folders and keeps the outermost of those that nest.
#include "daemon/worker/readable_roots.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "daemon/base/files.h"

namespace kernelwright::worker {
namespace {

namespace fs = std::filesystem;

class RealSystem : public FolderSystem {
 public:
  bool Exists(const fs::path& path) const override {
    std::error_code error;
    return fs::exists(path, error);
  }
};

fs::path WithoutTrailingSlash(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  return normal.has_filename() || normal == normal.root_path() ? normal : normal.parent_path();
}

}  // namespace

const FolderSystem& RealFolderSystem() {
  static const RealSystem system;
  return system;
}

fs::path ImportRoot(const fs::path& file, const FolderSystem& system) {
  fs::path folder = file.parent_path();
  while (folder.has_relative_path() && system.Exists(folder / "__init__.py")) folder = folder.parent_path();
  return folder;
}

std::vector<std::string> ReadableRoots(const agents::ToolchainOptions& options, const FolderSystem& system) {
  std::set<fs::path> roots;
  const auto add = [&](const fs::path& path) {
    const fs::path absolute = WithoutTrailingSlash(path.is_absolute() ? path : options.working_directory / path);
    // "/" would show everything; a worker refuses it, and the file itself comes with each job.
    if (absolute.is_absolute() && absolute != absolute.root_path() && system.Exists(absolute)) roots.insert(absolute);
  };
  if (!options.file.empty()) {
    const fs::path file = options.file;
    add(ImportRoot(file.is_absolute() ? file : options.working_directory / file, system));
  }
  if (!options.working_directory.empty()) add(options.working_directory);
  for (const std::string& folder : options.readable_folders) add(folder);
  // A user's PYTHONPATH is passed on to the interpreter, so it must be readable too.
  if (const auto it = options.environment.find("PYTHONPATH"); it != options.environment.end()) {
    std::string_view rest = it->second;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) add(fs::path(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  std::vector<std::string> kept;
  for (const fs::path& root : roots) {
    const bool covered = std::any_of(roots.begin(), roots.end(),
                                     [&](const fs::path& other) { return other != root && IsInside(root, other); });
    if (!covered) kept.push_back(root.string());
  }
  return kept;
}

}  // namespace kernelwright::worker
