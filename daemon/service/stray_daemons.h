// Daemons of this user that its clients do not find: in another of the places where a daemon may meet its clients, or
// with its discovery file gone. They are found by the lock that the kernel holds for them, not by process names.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "daemon/service/runtime_folder.h"

namespace kernelwright::service {

struct StrayDaemon {
  pid_t pid = 0;
  std::filesystem::path folder;
  std::string why;  // clients do not find it
};

std::vector<StrayDaemon> FindStrayDaemons(const RuntimeEnvironment& environment);

}  // namespace kernelwright::service
