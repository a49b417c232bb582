// The private folder in which daemon and clients meet: its socket, locks and discovery file. A client checks the folder
// as strictly as the daemon does, because whoever can write there could pose as the daemon.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "daemon/base/status.h"

namespace kernelwright::service {

struct RuntimeFolder {
  std::filesystem::path folder;

  std::filesystem::path socket() const { return folder / "daemon.sock"; }
  // Held by the daemon for its whole life; decides who serves.
  std::filesystem::path lock() const { return folder / "daemon.lock"; }
  // Held by a client over read, probe and spawn, so that parallel starts make one daemon.
  std::filesystem::path start_lock() const { return folder / "start.lock"; }
  std::filesystem::path discovery() const { return folder / "daemon.json"; }
};

// What the choice of the folder depends on.
struct RuntimeEnvironment {
  std::string xdg_runtime_dir;                   // $XDG_RUNTIME_DIR, may be empty
  std::string tmpdir;                            // $TMPDIR, may be empty
  std::filesystem::path run_user = "/run/user";  // parent of the per-user folders of systemd
  uid_t uid = 0;

  static RuntimeEnvironment FromProcess();
};

// Where a daemon of this user may be, the place that is chosen first; nothing is made or checked.
std::vector<RuntimeFolder> PossibleRuntimeFolders(const RuntimeEnvironment& environment);

// Chooses $XDG_RUNTIME_DIR/kernelwright, else /run/user/<uid>/kernelwright (a cron job and a login shell must find the
// same daemon), else <tmpdir>/kernelwright-<uid>; makes it with mode 0700 or checks owner and mode. kEnvironment when
// the folder belongs to somebody else, is a link, or its socket path is longer than a Unix address can hold.
Expected<RuntimeFolder> OpenRuntimeFolder(const RuntimeEnvironment& environment);

}  // namespace kernelwright::service
