// Folders from the environment and from the program's place; see paths.h.
#include "daemon/cli/paths.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <string>

#include "daemon/base/files.h"

namespace kernelwright::cli {
namespace {

namespace fs = std::filesystem;

Expected<fs::path> Home() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') return fs::path(home);
  if (const passwd* entry = ::getpwuid(::geteuid()); entry != nullptr && *entry->pw_dir == '/') {
    return fs::path(entry->pw_dir);
  }
  return Fail(ErrorKind::kEnvironment, "there is no home folder", "HOME", "Set HOME to a folder of yours.");
}

// $`variable`/kernelwright, else ~/`below_home`/kernelwright, made if needed.
Expected<fs::path> PrivateFolder(const char* variable, const char* below_home) {
  fs::path folder;
  if (const char* value = std::getenv(variable); value != nullptr && *value == '/') {
    folder = value;
  } else {
    Expected<fs::path> home = Home();
    if (!home) return home;
    folder = *home / below_home;
  }
  folder /= "kernelwright";
  if (Status made = MakePrivateFolder(folder); !made.ok()) return Fail(made);
  return folder;
}

Expected<fs::path> FirstThatExists(std::initializer_list<fs::path> folders, const std::string& what) {
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    if (fs::is_directory(folder, ignored)) return folder;
  }
  return Fail(ErrorKind::kEnvironment, "the " + what + " of this installation are missing", *folders.begin(),
              "Install Kernelwright again.");
}

}  // namespace

Expected<fs::path> ProgramPath() {
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error)
    return Fail(ErrorKind::kEnvironment, "this program cannot find its own file", "/proc/self/exe", "Mount /proc.");
  // An update that replaced the file leaves a running program with this mark.
  constexpr std::string_view kDeleted = " (deleted)";
  std::string text = program.string();
  if (text.ends_with(kDeleted)) text.resize(text.size() - kDeleted.size());
  return fs::path(text);
}

Expected<fs::path> StateFolder() { return PrivateFolder("XDG_STATE_HOME", ".local/state"); }

Expected<agents::EngineOptions> FindEngineOptions() {
  agents::EngineOptions options;
  Expected<fs::path> state = StateFolder();
  if (!state) return Fail(state.error());
  options.state_folder = *state;
  Expected<fs::path> cache = PrivateFolder("XDG_CACHE_HOME", ".cache");
  if (!cache) return Fail(cache.error());
  options.cache_folder = *cache;
  Expected<fs::path> program = ProgramPath();
  if (!program) return Fail(program.error());
  const fs::path here = program->parent_path();
  const fs::path installed = here.parent_path() / "share" / "kernelwright";
  Expected<fs::path> agents = FirstThatExists({installed / "agents", KW_BUILD_AGENTS_FOLDER}, "data files");
  if (!agents) return Fail(agents.error());
  options.agents_folder = *agents;
  Expected<fs::path> python = FirstThatExists({installed / "python", here / "python"}, "Python contracts");
  if (!python) return Fail(python.error());
  options.proto_python_folder = *python;
  return options;
}

}  // namespace kernelwright::cli
