// Runs a program to its end and returns what it printed; for short helpers such as asking an interpreter for its
// version.
#pragma once

#include <cstddef>
#include <stop_token>
#include <string>

#include "daemon/base/subprocess.h"

namespace kernelwright {

struct CommandResult {
  ExitStatus exit;
  std::string output;
  std::string error;
  bool truncated = false;  // one of the two was longer than the limit; the rest was read and dropped
};

// `options.output` and `options.error` are replaced by pipes, standard input by /dev/null. On a stop request or the
// deadline the group is ended and the Status is kCancelled or kLimit. A non-zero exit is a result, not an error.
Expected<CommandResult> RunCommand(SubprocessOptions options, const Deadline& deadline,
                                   const std::stop_token& stop = {}, size_t max_bytes = size_t{1} << 20);

}  // namespace kernelwright
