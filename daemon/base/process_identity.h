// Names one process for good: a process number alone is reused, so the start time and the boot are part of the name.
// Used to tell whether the owner of a lock or of an interrupted run is still alive.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "daemon/base/status.h"

namespace kernelwright {

struct ProcessIdentity {
  std::string boot_id;  // the kernel's random name of this boot
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // clock ticks from boot to the start of the process

  bool operator==(const ProcessIdentity&) const = default;
  // "boot:pid:ticks", the form that is stored.
  std::string ToString() const;
  static Expected<ProcessIdentity> Parse(const std::string& text);
};

// This process.
Expected<ProcessIdentity> CurrentProcess();

// The process that has this number now; kNotFound when there is none.
Expected<ProcessIdentity> IdentifyProcess(pid_t pid);

// Whether exactly this process runs (a zombie does not). In doubt, as with an unreadable /proc, the answer is yes.
bool IsAlive(const ProcessIdentity& identity);

}  // namespace kernelwright
