// What a starting daemon tells the client that spawned it, over a pipe: one line, then end-of-file. A daemon that dies
// before it says anything ends the wait just as fast, because the pipe closes with it.
#pragma once

#include <sys/types.h>

#include <string>

#include "daemon/base/status.h"

namespace kernelwright::service {

struct StartupReport {
  enum class Kind { kReady, kHeld, kFailed };
  Kind kind = Kind::kReady;
  pid_t held_by = 0;  // kHeld: the daemon that serves; 0 when it has not said so yet
  Status error;       // kFailed, kHeld
};

std::string StartupReportToJson(const StartupReport& report);
Expected<StartupReport> ParseStartupReport(const std::string& text);

// Writes the report and closes the descriptor; does nothing for a negative one.
void SendStartupReport(int fd, const StartupReport& report);

}  // namespace kernelwright::service
