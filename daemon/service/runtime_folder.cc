// Choice and check of the meeting place; see runtime_folder.h.
#include "daemon/service/runtime_folder.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>

#include "daemon/base/files.h"

namespace kernelwright::service {
namespace {

namespace fs = std::filesystem;

std::string Env(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A folder of which the user is the owner; links are followed, because /run/user/<uid> may well be one.
bool OwnFolder(const fs::path& path, uid_t uid) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == uid;
}

}  // namespace

RuntimeEnvironment RuntimeEnvironment::FromProcess() {
  RuntimeEnvironment environment;
  environment.xdg_runtime_dir = Env("XDG_RUNTIME_DIR");
  environment.tmpdir = Env("TMPDIR");
  environment.uid = ::geteuid();
  return environment;
}

std::vector<RuntimeFolder> PossibleRuntimeFolders(const RuntimeEnvironment& environment) {
  std::vector<RuntimeFolder> folders;
  const auto add = [&folders](const fs::path& folder) {
    for (const RuntimeFolder& known : folders) {
      if (known.folder == folder) return;
    }
    folders.push_back({folder});
  };
  const fs::path xdg = environment.xdg_runtime_dir;
  if (xdg.is_absolute() && OwnFolder(xdg, environment.uid)) add(xdg / "kernelwright");
  const fs::path run_user = environment.run_user / std::to_string(environment.uid);
  if (OwnFolder(run_user, environment.uid)) add(run_user / "kernelwright");
  const fs::path tmp = environment.tmpdir.empty() ? fs::path("/tmp") : fs::path(environment.tmpdir);
  add(tmp / ("kernelwright-" + std::to_string(environment.uid)));
  return folders;
}

Expected<RuntimeFolder> OpenRuntimeFolder(const RuntimeEnvironment& environment) {
  RuntimeFolder result = PossibleRuntimeFolders(environment).front();
  // A longer path is cut off or refused deep inside the transport, which says nothing useful about it.
  constexpr size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (const std::string socket = result.socket(); socket.size() > kLongest) {
    return Fail(ErrorKind::kEnvironment,
                "the path of the daemon's socket has " + std::to_string(socket.size()) + " characters, at most " +
                    std::to_string(kLongest) + " are possible",
                socket, "Set XDG_RUNTIME_DIR to a folder of yours with a shorter path, or use --in-process.");
  }
  if (Status made = MakePrivateFolder(result.folder); !made.ok()) {
    return Fail(ErrorKind::kEnvironment, made.message(), made.where(),
                "The daemon's folder must belong to you alone. Remove it, or set XDG_RUNTIME_DIR to a folder of yours, "
                "or use --in-process.");
  }
  return result;
}

}  // namespace kernelwright::service
