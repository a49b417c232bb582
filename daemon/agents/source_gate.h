// Gate G10: what a candidate's text adds to the original must not be able to cheat. It compares constructs, not lines:
// what the user's file already had is the user's affair, a new one of a forbidden kind is a failure with its line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/agents/toolchain.h"

namespace kernelwright::agents {

// A construct that a candidate may not add.
struct SourceFinding {
  std::string kind;  // "import", "call", "try", "interpret", "patch", "cache", "global", "module array"
  std::string text;  // what it is, without positions: equal findings in original and candidate cancel out
  int line = 0;      // from 1
};

// Every construct of a forbidden kind in a Python text, in source order.
std::vector<SourceFinding> FindForbidden(std::string_view text);

// G10 for one file: passes when `candidate` has no finding that `original` lacks and `function` (a qualified name) has
// the same parameters in both. `function` may be empty for files that do not hold the entry point.
GateResult CheckSource(const std::string& path, std::string_view original, std::string_view candidate,
                       std::string_view function);

}  // namespace kernelwright::agents
