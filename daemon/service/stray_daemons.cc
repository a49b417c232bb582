// Looks at the locks of all places; see stray_daemons.h.
#include "daemon/service/stray_daemons.h"

#include "daemon/base/lock_file.h"
#include "daemon/service/discovery.h"

namespace kernelwright::service {

std::vector<StrayDaemon> FindStrayDaemons(const RuntimeEnvironment& environment) {
  std::vector<StrayDaemon> strays;
  const std::vector<RuntimeFolder> folders = PossibleRuntimeFolders(environment);
  for (size_t i = 0; i < folders.size(); ++i) {
    const RuntimeFolder& folder = folders[i];
    const Expected<pid_t> holder = LockFile::Holder(folder.lock());
    if (!holder || *holder == 0) continue;
    if (i > 0) {
      strays.push_back({*holder, folder.folder, "XDG_RUNTIME_DIR was another one when it was started"});
      continue;
    }
    const Expected<Discovery> discovery = ReadDiscovery(folder.discovery());
    if (!discovery) {
      strays.push_back({*holder, folder.folder, discovery.error().message()});
    } else if (discovery->pid != *holder) {
      strays.push_back({*holder, folder.folder, "the discovery file names another process"});
    }
  }
  return strays;
}

}  // namespace kernelwright::service
