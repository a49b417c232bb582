// The decision about the interpreter, step by step, with a record of every place that was looked at.
#include "daemon/worker/interpreter.h"

#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/subprocess.h"

namespace kernelwright::worker {
namespace {

namespace fs = std::filesystem;
using Environment = std::map<std::string, std::string>;

constexpr const char* kRemedy = "Run scripts/setup to make an environment, or name an interpreter with --python PATH.";

std::string Get(const Environment& environment, const std::string& name) {
  const auto it = environment.find(name);
  return it == environment.end() ? "" : it->second;
}

class RealSystem : public InterpreterSystem {
 public:
  bool IsExecutableFile(const fs::path& path) const override {
    std::error_code error;
    return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
  }
  bool IsFolder(const fs::path& path) const override {
    std::error_code error;
    return fs::is_directory(path, error);
  }
  bool IsOurs(const fs::path& folder) const override {
    struct stat info{};
    return ::lstat(folder.c_str(), &info) == 0 && (info.st_uid == ::geteuid() || info.st_uid == 0);
  }
  std::optional<fs::path> FindOnPath(const std::string& name, const std::string& path) const override {
    Expected<fs::path> found = FindProgram(name, path.c_str());
    if (!found) return std::nullopt;
    return *found;
  }
};

// The interpreter of an environment's folder, if there is one.
std::optional<fs::path> InFolder(const fs::path& folder, const InterpreterSystem& system) {
  for (const char* name : {"bin/python", "bin/python3"}) {
    if (system.IsExecutableFile(folder / name)) return folder / name;
  }
  return std::nullopt;
}

class Chooser {
 public:
  Chooser(const InterpreterQuery& query, const InterpreterSystem& system) : query_(query), system_(system) {}

  Expected<InterpreterChoice> Choose() {
    if (!query_.python.empty()) return Named();
    if (std::optional<fs::path> found = Active()) {
      return Take(*found, InterpreterChoice::Origin::kActive, "the active environment (VIRTUAL_ENV)");
    }
    if (std::optional<fs::path> found = NearestVenv()) {
      return Take(*found, InterpreterChoice::Origin::kVenv, "the nearest .venv above the file");
    }
    if (std::optional<fs::path> found = Own()) {
      return Take(*found, InterpreterChoice::Origin::kOwn, "Kernelwright's own environment");
    }
    std::string message = "no Python interpreter was found. Looked at: ";
    for (size_t i = 0; i < looked_at_.size(); ++i) message += (i == 0 ? "" : "; ") + looked_at_[i];
    return Fail(ErrorKind::kEnvironment, std::move(message), "Python", kRemedy);
  }

 private:
  fs::path Absolute(const fs::path& path) const {
    return path.is_absolute() ? path.lexically_normal() : (query_.working_directory / path).lexically_normal();
  }

  InterpreterChoice Take(const fs::path& python, InterpreterChoice::Origin origin, std::string reason) {
    looked_at_.push_back(python.string());
    return {.python = python, .origin = origin, .reason = std::move(reason), .looked_at = std::move(looked_at_)};
  }

  Expected<InterpreterChoice> Named() {
    constexpr auto kOrigin = InterpreterChoice::Origin::kNamed;
    const std::string reason = "named by --python or the setting";
    const std::string home = Get(query_.environment, "HOME");
    std::string name = query_.python;
    if (name.starts_with("~/") && !home.empty()) name = home + name.substr(1);
    if (name.find('/') == std::string::npos) {
      // A bare name is a program, unless the working folder has an environment of that name.
      if (std::optional<fs::path> found = system_.FindOnPath(name, Get(query_.environment, "PATH"))) {
        return Take(Absolute(*found), kOrigin, reason);
      }
    }
    const fs::path path = Absolute(name);
    if (system_.IsFolder(path)) {
      if (std::optional<fs::path> found = InFolder(path, system_)) return Take(*found, kOrigin, reason);
      return Fail(ErrorKind::kEnvironment, "the folder has no bin/python", path.string(),
                  "Name an interpreter or the folder of a virtual environment with --python.");
    }
    if (system_.IsExecutableFile(path)) return Take(path, kOrigin, reason);
    return Fail(ErrorKind::kEnvironment, "the interpreter `" + query_.python + "` does not exist or is not executable",
                path.string(), "Correct --python or the setting, or leave it out to have one found.");
  }

  std::optional<fs::path> Active() {
    const fs::path folder = Get(query_.environment, "VIRTUAL_ENV");
    if (folder.empty() || !folder.is_absolute()) {
      looked_at_.emplace_back("VIRTUAL_ENV (not set)");
      return std::nullopt;
    }
    std::optional<fs::path> found = InFolder(folder, system_);
    if (!found) looked_at_.push_back("VIRTUAL_ENV=" + folder.string() + " (has no bin/python)");
    return found;
  }

  std::optional<fs::path> NearestVenv() {
    if (query_.file.empty()) return std::nullopt;
    const fs::path file = Absolute(query_.file);
    for (fs::path folder = file.parent_path();; folder = folder.parent_path()) {
      const fs::path venv = folder / ".venv";
      if (system_.IsFolder(venv)) {
        std::optional<fs::path> found = InFolder(venv, system_);
        if (found && system_.IsOurs(venv)) return found;
        looked_at_.push_back(venv.string() + (found ? " (belongs to another user)" : " (has no bin/python)"));
      }
      if (folder == folder.parent_path()) break;
    }
    looked_at_.push_back(".venv in the folders above " + file.string() + " (none)");
    return std::nullopt;
  }

  std::optional<fs::path> Own() {
    const fs::path folder = OwnEnvironmentFolder(query_.environment);
    if (folder.empty()) {
      looked_at_.emplace_back("Kernelwright's own environment (HOME is not set)");
      return std::nullopt;
    }
    std::optional<fs::path> found = InFolder(folder, system_);
    if (!found) looked_at_.push_back("Kernelwright's own environment in " + folder.string() + " (not set up)");
    return found;
  }

  const InterpreterQuery& query_;
  const InterpreterSystem& system_;
  std::vector<std::string> looked_at_;
};

}  // namespace

const InterpreterSystem& RealInterpreterSystem() {
  static const RealSystem system;
  return system;
}

Expected<InterpreterChoice> ChooseInterpreter(const InterpreterQuery& query, const InterpreterSystem& system) {
  return Chooser(query, system).Choose();
}

fs::path OwnEnvironmentFolder(const std::map<std::string, std::string>& environment) {
  const std::string home = Get(environment, "KERNELWRIGHT_HOME");
  if (!home.empty()) return fs::path(home) / "python";
  const std::string data = Get(environment, "XDG_DATA_HOME");
  if (data.starts_with('/')) return fs::path(data) / "kernelwright" / "python";
  const std::string user = Get(environment, "HOME");
  if (!user.empty()) return fs::path(user) / ".local" / "share" / "kernelwright" / "python";
  return {};
}

}  // namespace kernelwright::worker
