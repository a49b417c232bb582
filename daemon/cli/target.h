// FILE.py::function as people type it.
#pragma once

#include <string>

#include "daemon/base/status.h"

namespace kernelwright::cli {

struct Target {
  std::string file;      // absolute
  std::string function;  // qualified name; empty when none was named
};

// kUsage when the file is empty or a function is named by "::" but empty.
Expected<Target> ParseTarget(const std::string& text);

}  // namespace kernelwright::cli
