// Turns the operating system's error numbers into a Status that says what to do: disk full, read-only, missing folder,
// too many open files each get their own kind and remedy, the same text wherever they occur.
#pragma once

#include <string>

#include "daemon/base/status.h"

namespace kernelwright {

// `what` is the attempt ("cannot write"), `where` the path. The system's own words are appended to the message.
Status StatusFromErrno(int error, std::string what, std::string where = {});

// "No space left on device" and so on, thread-safe.
std::string ErrnoText(int error);

}  // namespace kernelwright
