// Reads the resident set from /proc; see memory.h.
#include "daemon/service/memory.h"

#include <unistd.h>

#include <fstream>

namespace kernelwright::service {

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t total = 0;
  uint64_t resident = 0;
  if (!(statm >> total >> resident)) return 0;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace kernelwright::service
