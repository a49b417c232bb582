// An error that the user's code met in a worker, as Python told it.
#pragma once

#include <string>
#include <vector>

#include "daemon/kernels/program.h"

namespace kernelwright {

// `stage`: import, resolve, inputs, trace, lower, export, compile, run.
struct CodeError {
  std::string stage;
  std::string type;                // exception class
  std::string message;             // whole
  std::string cause;               // whole, of __cause__
  std::vector<SourceSpan> frames;  // innermost first
  std::string traceback;
};

}  // namespace kernelwright
