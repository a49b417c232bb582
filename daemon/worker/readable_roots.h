// Which folders of the user a sandboxed job may read: where the file's imports come from, the working folder, and what
// the client names. The interpreter's own folders are the worker's business. Home folders and "/" are never given as a
// whole: the worker shows of them only the modules in them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "daemon/agents/toolchain.h"

namespace kernelwright::worker {

// What the decision may ask of the machine.
class FolderSystem {
 public:
  virtual ~FolderSystem() = default;
  virtual bool Exists(const std::filesystem::path& path) const = 0;
};
const FolderSystem& RealFolderSystem();

// The folder from which the file is imported: its own, or the parent of the top package when it lies inside one.
std::filesystem::path ImportRoot(const std::filesystem::path& file, const FolderSystem& system);

// Absolute folders, sorted, each once, none below another one.
std::vector<std::string> ReadableRoots(const agents::ToolchainOptions& options, const FolderSystem& system);

}  // namespace kernelwright::worker
