// Where the cycles of a replay go: to source lines and to units. Every tick lands on exactly one line, so that the
// lines of a program add up to its total.
#pragma once

#include <string>
#include <vector>

#include "daemon/cost/estimate.h"
#include "daemon/cost/replay.h"

namespace kernelwright::cost {

// Share of a program's bundles that hold an operation of a unit, weighted by how often they ran.
struct UnitShares {
  double mxu = 0;
  double vector = 0;       // VPU, XLU, EUP, vector loads and stores
  double scalar_only = 0;  // bundles with nothing but scalar, control and sync operations, or nothing at all
};

struct Attribution {
  std::vector<LineCost> lines;  // sorted by file and line; line 0 with an empty file first
  UnitShares shares;
};

// `fallback_file` and `fallback_line` take what has no line, for units that carry no locations at all (XLA fusions);
// an empty file means line 0.
Attribution AttributeProgram(const ScalarProgram& program, const ProgramTrace& trace, const std::string& fallback_file,
                             int fallback_line);

// Adds `more` into `lines` by file and line.
void MergeLines(const std::vector<LineCost>& more, std::vector<LineCost>* lines);

}  // namespace kernelwright::cost
