// Starts a daemon that outlives its starter, and waits until it serves or has failed. Unlike the daemon's own children
// it gets a session of its own and no guard.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "daemon/base/deadline.h"
#include "daemon/base/status.h"
#include "daemon/service/startup_report.h"

namespace kernelwright::service {

struct DaemonCommand {
  std::vector<std::string> argv;           // argv[0] is the program's path; "--ready-fd 3" is added
  std::map<std::string, std::string> env;  // the daemon's whole environment
  std::filesystem::path stderr_file;       // what the daemon prints before it logs; emptied first
};

// The part of this process's environment that a daemon may have: where things are and which language to speak. No keys:
// a daemon serves many clients, and the first one's secrets are not the others'.
std::map<std::string, std::string> DaemonEnvironment(char** environment);

// kReady and kHeld are values. A daemon that fails gives its own error; one that dies without a word gives its exit
// code and the end of stderr_file; one that is not ready at the deadline is ended.
Expected<StartupReport> SpawnDaemon(const DaemonCommand& command, Deadline deadline);

}  // namespace kernelwright::service
