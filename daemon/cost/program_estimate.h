// From the compiler's text dumps of one compiled program to a time, or a refusal with its reason (docs/cost-model.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/cost/chips.h"
#include "daemon/cost/estimate.h"
#include "daemon/cost/known_operands.h"

namespace kernelwright::cost {

// One text file that the compiler dumped: its file name (a path is allowed) and its content.
struct Dump {
  std::string name;
  std::string text;
};
using Dumps = std::vector<Dump>;

// Replays the schedule in `dumps` (one compiled program: final_bundles of all units, TLP-hlo,
// pre-finalize-registers-and-allocations; others are ignored) on `chip`. `work` gives the floor; `versions` goes into
// the evidence. Text that cannot be read is a refusal too: there is no other kind of failure. `known` are values of
// integer operands: a program whose time depends on them is refused without.
CostResult EstimateFromDumps(Dumps dumps, const Chip& chip, const Work& work,
                             const std::map<std::string, std::string>& versions,
                             const std::vector<KnownOperand>& known = {});

}  // namespace kernelwright::cost
